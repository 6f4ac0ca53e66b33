/** The ledger: the trial balance at an instant, its accounts, and its transactions. */

import {
  account,
  transaction,
  type trialBalance,
  trialLine,
} from '../../../../resources/ledger/ledger.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useData, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { valuesOf } from '../../kit/dialog.ts';
import {
  Amount,
  Card,
  Facts,
  Failed,
  FilterInput,
  ListTable,
  State,
  Tabs,
  Time,
  View,
  WalletLink,
} from '../../kit/elements.ts';
import { instantOf, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

const TABS = [
  ['trial-balance', 'Trial balance'],
  ['accounts', 'Accounts'],
  ['transactions', 'Transactions'],
] as const;

export default function Ledger(_: ViewProps) {
  const { query } = usePlace();
  const show = query.get('show') ?? 'trial-balance';
  return html`<${View}
    title="Ledger"
    lead="Double entries in service tokens and NFTs. The entries of a transaction sum to zero, and
      none is ever changed: a correction is a reversal."
  >
    <${Card}>
      <${Tabs}
        tabs=${TABS}
        chosen=${show}
        onChange=${(value: string) => setQuery({ show: value })}
      />
      ${
        show === 'accounts'
          ? html`<${Accounts} />`
          : show === 'transactions'
            ? html`<${Transactions} account=${query.get('account') ?? ''} />`
            : html`<${TrialBalance} asOf=${query.get('as_of') ?? ''} />`
      }
    <//>
  <//>`;
}

/** An account by its name, as a link to what made its balance. */
function Account({ name }: { name: string }) {
  const addr = name.startsWith('wallet:') ? name.slice('wallet:'.length) : undefined;
  if (addr) return html`<span>wallet <${WalletLink} addr=${addr} /></span>`;
  const href = `/ledger?show=transactions&account=${encodeURIComponent(name)}`;
  return html`<a href=${href}>${name}</a>`;
}

type Line = Shown<typeof trialLine>;
type Totals = Shown<typeof trialBalance>;

function TrialBalance({ asOf }: { asOf: string }) {
  const path = withQuery('/api/ledger/trial-balance', { limit: '100', as_of: instantOf(asOf) });
  const list = useList<Line>(path);
  const totals = useData<Totals>(path);
  const choose = (event: Event) => setQuery({ as_of: (event.target as HTMLInputElement).value });
  return html`<div class="filters">
      <label class="field">
        <span>Before (empty: everything until now)</span>
        <${FilterInput} type="datetime-local" value=${asOf} onChange=${choose} />
      </label>
    </div>
    <${Failed} problem=${totals.problem} retry=${totals.reload} />
    ${totals.data && html`<${Totals} of=${totals.data} />`}
    <${ListTable}
      list=${list}
      columns=${TRIAL_COLUMNS}
      keyOf=${({ account, asset }: Line) => `${account} ${asset}`}
      empty="The ledger has no entry before this time."
    />`;
}

function Totals({ of: { debit, credit } }: { of: Totals }) {
  return html`<${Facts}
    pairs=${[
      ['All debits', html`<${Amount} of=${debit} />`],
      ['All credits', html`<${Amount} of=${credit} />`],
      ['They are', html`<${State} of=${debit === credit ? 'balanced' : 'unbalanced'} />`],
    ]}
  />`;
}

const amountOr = (of: string) => (of === '0' ? '' : html`<${Amount} of=${of} />`);

const TRIAL_COLUMNS = columnsFor(trialLine, {
  account: { of: ({ account }) => html`<${Account} name=${account} />` },
  asset: { of: ({ asset }) => wordsOf(asset) },
  debit: { of: ({ debit }) => amountOr(debit) },
  credit: { of: ({ credit }) => amountOr(credit) },
});

type AccountRow = Shown<typeof account>;

const ACCOUNT_COLUMNS = columnsFor(account, {
  account: { of: ({ account }) => html`<${Account} name=${account} />` },
  kind: { of: ({ kind }) => wordsOf(kind) },
  asset: { of: ({ asset }) => wordsOf(asset) },
  entries: {
    of: ({ account, entries }) =>
      html`<a href=${`/ledger?show=transactions&account=${encodeURIComponent(account)}`}>
        <${Amount} of=${entries} />
      </a>`,
  },
});

function Accounts() {
  const list = useList<AccountRow>('/api/ledger/accounts?limit=100');
  return html`<${ListTable}
    list=${list}
    columns=${ACCOUNT_COLUMNS}
    keyOf=${({ account, asset }: AccountRow) => `${account} ${asset}`}
    empty="The ledger has no account yet."
  />`;
}

type Transaction = Shown<typeof transaction>;

function Transactions({ account }: { account: string }) {
  const list = useList<Transaction>(
    withQuery('/api/ledger/transactions', { limit: '50', account }),
  );
  const find = (event: Event) => {
    setQuery({ account: valuesOf(event).account ?? '' });
  };
  return html`<form class="filters" onSubmit=${find} role="search">
      <label class="field grow">
        <span>Account, such as wallet:0x…, operator:1, fees, external</span>
        <${FilterInput} name="account" type="search" value=${account} />
      </label>
      <button type="submit">Find</button>
    </form>
    <${ListTable}
      list=${list}
      file=${transaction}
      columns=${TRANSACTION_COLUMNS}
      keyOf=${({ id }: Transaction) => id}
      empty="No transaction matches."
    />`;
}

/** Openings are posted by the daemon itself. */
const actorOf = (by: string | null) => (by === 'reconciler' ? 'Tallyhook' : by);

const TRANSACTION_COLUMNS = columnsFor(transaction, {
  id: { number: true },
  effective_at: { of: ({ effective_at: at }) => html`<${Time} at=${at} exact />` },
  kind: {
    of: ({ kind, operation_id: id, reverses }) =>
      html`<span>
        ${id ? html`<a href=${`/operations/${id}`}>${wordsOf(kind)}</a>` : wordsOf(kind)}
        ${reverses && html` <span class="muted">of ${reverses}</span>`}
      </span>`,
  },
  entries: {
    of: ({ entries }) =>
      html`<div class="entries">
        ${entries.map(
          ({ account, amount }) => html`<div>
            <${Amount} of=${amount} signed /> <${Account} name=${account} />
          </div>`,
        )}
      </div>`,
  },
  requested_by: {
    of: (row) =>
      [actorOf(row.requested_by), row.reason_type && wordsOf(row.reason_type), row.reference]
        .filter(Boolean)
        .join(', '),
  },
});
