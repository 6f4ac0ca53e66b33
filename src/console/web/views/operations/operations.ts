/** The list of operations; search and filters are part of the address. */
import { KINDS, operation, STATES } from '../../../../resources/operations/operation.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { valuesOf } from '../../kit/dialog.ts';
import {
  Amount,
  Card,
  Chip,
  Choice,
  Code,
  type Column,
  FilterInput,
  ListTable,
  State,
  Time,
  View,
  WalletLink,
} from '../../kit/elements.ts';
import { isAddress, pageOf } from '../../kit/find.ts';
import { inputText, instantOf, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { go, setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

export type Operation = Shown<typeof operation>;

const ADVICE: Record<string, string> = {
  undecided:
    'Evidence does not decide these operations. Open one to propose its outcome; another approves.',
  unknown:
    'The answer of the service was lost. Polls resolve these operations, or leave them to people.',
  queued: 'These operations wait for the service. Open one to cancel it.',
};

/** `open` stands for every state that is not final. */
function stateOf(state: string): Record<string, string> {
  return state === 'open' ? { open: 'true' } : { state };
}

/** What the API is to search for a text. */
function filterOf(text: string): Record<string, string> {
  if (text === '') return {};
  if (/^\d+$/.test(text)) return { tx_log_no: text };
  if (isAddress(text)) return { addr: text };
  return /^[0-9a-z]{66}$/i.test(text) ? { tx_hash: text } : { reference: text };
}

export default function Operations(_: ViewProps) {
  const { query } = usePlace();
  const [state, kind, text, proposed] = ['state', 'kind', 'query', 'proposed'].map(
    (name) => query.get(name) ?? '',
  );
  const more = Object.fromEntries(MORE.map((name) => [name, query.get(name) ?? '']));
  const list = useList<Operation>(
    withQuery('/api/operations', {
      limit: '50',
      kind,
      proposed,
      ...stateOf(state ?? ''),
      ...moreOf(more),
      ...filterOf(text ?? ''),
    }),
  );
  const find = (event: Event) => {
    const { query: given = '', since, until, ...values } = valuesOf(event);
    const page = pageOf(given);
    if (page !== undefined) go(page);
    else {
      const { token = '', key = '' } = values;
      setQuery({ query: given, token, key, since: instantOf(since), until: instantOf(until) });
    }
  };
  const options = (names: readonly string[]) =>
    names.map((name): [string, string] => [name, wordsOf(name)]);
  return html`<${View} title="Operations" lead=${ADVICE[state ?? '']}>
    <${Card}>
      <form class="filters" onSubmit=${find} role="search">
        <${Choice}
          name="State"
          value=${state}
          options=${[['', 'any state'], ['open', 'all that are open'], ...options(STATES)]}
          onChange=${(value: string) => setQuery({ state: value })}
        />
        <${Choice}
          name="Kind"
          value=${kind}
          options=${[['', 'any kind'], ...options(KINDS)]}
          onChange=${(value: string) => setQuery({ kind: value })}
        />
        <label class="field grow">
          <span>Reference, number, hash, address or op_…</span>
          <${FilterInput} name="query" type="search" value=${text} />
        </label>
        <button type="submit">Find</button>
        ${
          proposed &&
          html`<${Chip}
            text="Only with a proposal that waits"
            remove=${() => setQuery({ proposed: '' })}
          />`
        }
        <${MoreFilters} values=${more} />
      </form>
    <//>
    <${Card}>
      <${ListTable}
        list=${list}
        file=${operation}
        columns=${COLUMNS}
        keyOf=${({ id }: Operation) => id}
        empty="No operation matches. Writes through the gateway and reported ones appear here."
      />
    <//>
  <//>`;
}

/** Further filters by their names in the address. */
const MORE = ['since', 'until', 'token', 'key'] as const;
type More = Record<string, string>;

function moreOf({ since, until, token = '', key }: More) {
  const [contract, id] = token.split('/');
  return { since, until, contract_id: contract, token_id: id, idempotency_key: key };
}

function MoreFilters({ values }: { values: More }) {
  const time = (name: string, label: string) => html`<label class="field">
    <span>${label}</span>
    <${FilterInput}
      name=${name}
      type="datetime-local"
      step="1"
      value=${values[name] ? inputText(values[name]) : ''}
    />
  </label>`;
  return html`<details class="more" open=${Object.values(values).some(Boolean)}>
    <summary>More filters</summary>
    <div class="filters">
      ${time('since', 'Recorded from')} ${time('until', 'Recorded before')}
      <label class="field">
        <span>Contract, or contract/token</span>
        <${FilterInput}
          name="token"
          value=${values.token}
          pattern="[0-9]+(/[0-9]+)?"
          title="Numbers, such as 12 or 12/345"
        />
      </label>
      <label class="field grow">
        <span>Idempotency key</span>
        <${FilterInput} name="key" value=${values.key} />
      </label>
    </div>
  </details>`;
}

function partyOf({ from_addr: from, operation_no: operator }: Operation) {
  if (from) return html`<${WalletLink} addr=${from} />`;
  return operator ? `operator ${operator}` : undefined;
}

function numberOf({ tx_log_no: number, tx_hash: hash }: Operation) {
  return number ?? (hash ? html`<${Code} text=${hash} />` : undefined);
}

function whatOf(row: Operation) {
  const { contract_id: contract, token_id: token, amount } = row;
  if (contract === null) return html`<${Amount} of=${amount} />`;
  const name = `${contract}/${token ?? 'next'}`;
  return token === null ? name : html`<a href=${`/tokens/${name}`}>token ${name}</a>`;
}

/** These columns of operations; the time leads to the operation. */
export function operationColumns(
  columns: readonly (keyof Operation)[],
  own: Record<string, Partial<Column<Operation>>> = {},
) {
  return columnsFor(
    { ...operation, columns },
    {
      recorded_at: {
        of: ({ id, recorded_at: at }) =>
          html`<a href=${`/operations/${id}`}><${Time} at=${at} /></a>`,
      },
      state: { of: ({ state }) => html`<${State} of=${state} />` },
      ...own,
    },
  );
}

const COLUMNS = operationColumns(
  ['recorded_at', 'kind', 'state', 'from_addr', 'to_addr', 'amount', 'tx_log_no', 'reference'],
  {
    from_addr: { of: partyOf },
    amount: { head: 'Amount or token', of: whatOf },
    tx_log_no: { head: 'Number or hash', of: numberOf },
  },
);
