/** One wallet: its balance now and over time, its entries, operations, observations and drifts. */

import { drift } from '../../../../resources/ledger/drift.ts';
import {
  statementLine,
  type wallet,
  walletObservation,
} from '../../../../resources/ledger/wallet.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { type Page, useData, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import {
  Amount,
  Card,
  Code,
  Facts,
  Failed,
  ListTable,
  Pending,
  State,
  Tabs,
  Time,
  View,
  WalletLink,
} from '../../kit/elements.ts';
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { type Drift, Sentence } from '../drifts/drift-words.ts';
import { type Operation, operationColumns } from '../operations/operations.ts';
import { BalancePlot } from './balance-plot.ts';
import { WalletState } from './wallets.ts';

type Wallet = Shown<typeof wallet>;

interface Watch {
  id: string;
  created_at: string;
  created_by: string;
}

export default function WalletView({ ids }: ViewProps) {
  const addr = ids[0] ?? '';
  const path = `/api/wallets/${encodeURIComponent(addr)}`;
  const { data, problem, reload } = useData<Wallet>(path, 10_000);
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  return html`<${View}
    title=${html`Wallet <${WalletState} of=${data} />`}
    lead=${html`<${Code} text=${data.addr} whole />`}
  >
    <${Failed} problem=${problem} retry=${reload} />
    <${Parts} wallet=${data} path=${path} />
  <//>`;
}

function Parts({ wallet, path }: { wallet: Wallet; path: string }) {
  const { addr } = wallet;
  const chosen = usePlace().query.get('show') ?? 'statement';
  const lines = useList<Shown<typeof statementLine>>(`${path}/statement?limit=200`);
  const observations = useList<Shown<typeof walletObservation>>(`${path}/observations?limit=200`);
  const drifts = useList<Drift>(withQuery('/api/drifts', { limit: '50', addr }));
  const shown = {
    statement: html`<${Statement} list=${lines} />`,
    operations: html`<${Operations} addr=${addr} />`,
    observations: html`<${Observations} list=${observations} />`,
    drifts: html`<${Drifts} list=${drifts} />`,
  };
  const tabs = [
    ['statement', 'Statement'],
    ['operations', 'Operations'],
    ['observations', 'Observations'],
    ['drifts', 'Drifts'],
  ];
  return html`<div class="columns">
      <${Card} title="Balance now" tone=${wallet.drift === '0' ? 'none' : 'bad'}>
        <${Balance} wallet=${wallet} />
      <//>
      <${Card} title="Over time">
        <${BalancePlot}
          balance=${wallet.ledger_balance}
          lines=${lines.rows}
          observations=${observations.rows}
          drifts=${drifts.rows}
        />
      <//>
    </div>
    <${Card}>
      <${Tabs}
        tabs=${tabs}
        chosen=${chosen}
        onChange=${(show: string) => setQuery({ show })}
      />
      ${shown[chosen as keyof typeof shown] ?? shown.statement}
    <//>`;
}

function Balance({ wallet }: { wallet: Wallet }) {
  const { addr, ledger_balance: ledger, observed_balance: observed, drift } = wallet;
  const watches = useData<Page<Watch>>(withQuery('/api/watches', { addr }));
  const [watch] = watches.data?.data ?? [];
  const amount = (of: string | null, signed = false) =>
    html`<${Amount} of=${of} signed=${signed} />`;
  const unless0 = (of: string, shown: unknown = amount(of, true)) => (of === '0' ? null : shown);
  const difference = observed === null ? null : (BigInt(observed) - BigInt(ledger)).toString();
  return html`<${Facts}
    pairs=${[
      ['Ledger', amount(ledger)],
      [
        'Observed',
        html`${amount(observed)} <span class="muted"><${Time} at=${wallet.observed_at} /></span>`,
      ],
      ['Difference', amount(difference, true)],
      ['Drift', unless0(drift, html`<a href=${`/drifts?addr=${addr}`}>${amount(drift, true)}</a>`)],
      ['Not yet posted', unless0(wallet.unposted)],
      [
        'In flight',
        html`<a href=${`/operations?state=open&query=${addr}`}>
          ${amount(wallet.in_flight, true)}
        </a>`,
      ],
      ['Unknown', unless0(wallet.unknown)],
      [
        'At best and at worst',
        wallet.best_case === wallet.worst_case
          ? null
          : html`${amount(wallet.best_case)} and ${amount(wallet.worst_case)}`,
      ],
      ['Inconclusive', wallet.cause && wordsOf(wallet.cause)],
      ['In the ledger since', html`<${Time} at=${wallet.opened_at} exact />`],
      [
        'Watched by',
        watches.data &&
          (watch
            ? html`${watch.created_by} since <${Time} at=${watch.created_at} exact />`
            : 'no one: it is polled while operations touch it'),
      ],
    ]}
  />`;
}

function Statement({ list }: { list: object }) {
  return html`<${ListTable}
    list=${list}
    columns=${STATEMENT_COLUMNS}
    empty="The ledger has no entry of this wallet."
  />`;
}

/** Another account of the ledger; a wallet is linked. */
function accountOf(name: string) {
  const addr = name.startsWith('wallet:') ? name.slice('wallet:'.length) : undefined;
  return addr ? html`<${WalletLink} addr=${addr} />` : name;
}

const STATEMENT_COLUMNS = columnsFor(statementLine, {
  effective_at: { of: ({ effective_at: at }) => html`<${Time} at=${at} exact />` },
  kind: {
    of: ({ kind, operation_id: id }) =>
      id ? html`<a href=${`/operations/${id}`}>${wordsOf(kind)}</a>` : wordsOf(kind),
  },
  counterparty: {
    of: ({ counterparty }) =>
      html`<div>${counterparty.map((name) => html`<div>${accountOf(name)}</div>`)}</div>`,
  },
  amount: { of: ({ amount }) => html`<${Amount} of=${amount} signed />` },
});

function Operations({ addr }: { addr: string }) {
  const list = useList<Operation>(withQuery('/api/operations', { limit: '50', addr }));
  const columns = operationColumns(['recorded_at', 'kind', 'state', 'outcome', 'amount'], {
    outcome: { of: ({ outcome }) => (outcome === 'open' ? 'in flight' : wordsOf(outcome)) },
  });
  return html`<${ListTable}
    list=${list}
    columns=${columns}
    empty="No operation touches this wallet."
  />`;
}

const OBSERVATION_COLUMNS = columnsFor(walletObservation, {
  unchanged_since: { of: ({ unchanged_since: at }) => html`<${Time} at=${at} exact />` },
  ended_at: { of: ({ ended_at: at }) => html`<${Time} at=${at} exact />` },
  result: {
    of: ({ result, cause }) => [result, cause && wordsOf(cause)].filter(Boolean).join(': '),
  },
});

function Observations({ list }: { list: object }) {
  return html`<${ListTable}
    list=${list}
    columns=${OBSERVATION_COLUMNS}
    empty="Not observed yet."
  />`;
}

const DRIFT_COLUMNS = columnsFor(drift, {
  suspected_at: {
    of: ({ id, suspected_at: at }) =>
      html`<a href=${`/drifts/${id}`}><${Time} at=${at} exact /></a>`,
  },
  id: null,
  addr: { head: 'What happened', of: (row) => html`<${Sentence} of=${row} />` },
  amount: null,
  state: { of: ({ state }) => html`<${State} of=${state} />` },
  cause: null,
  assignee: null,
});

function Drifts({ list }: { list: object }) {
  return html`<${ListTable}
    list=${list}
    columns=${DRIFT_COLUMNS}
    empty="This wallet never had a drift."
  />`;
}
