/** The inbox of drifts: how old they are, what caused them, and orders for many at once. */

import { DRIFT_STATES, drift, type driftSummary } from '../../../../resources/ledger/drift.ts';
import { CAUSE_WORDS, isUnclosed } from '../../../../resources/ledger/drift-words.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useData, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { valuesOf } from '../../kit/dialog.ts';
import {
  Amount,
  Card,
  Chip,
  Choice,
  Failed,
  FilterInput,
  ListTable,
  State,
  Time,
  View,
} from '../../kit/elements.ts';
import { countText, durationText, instantText, wordsOf } from '../../kit/format.ts';
import { html, useEffect, useState } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { Approve, Assign, Propose, waitingOf } from './drift-orders.ts';
import { type Drift, Sentence } from './drift-words.ts';

type Summary = Shown<typeof driftSummary>;
type Sums = Pick<Summary['by_age'][number], 'up' | 'down'>;

export default function Drifts(_: ViewProps) {
  const { query } = usePlace();
  const state = query.get('state') ?? 'unclosed';
  const of = (name: string) => query.get(name) ?? '';
  const [cause, assignee, addr, age] = [of('cause'), of('assignee'), of('addr'), of('age')];
  const since = of('ended_since');
  const stored = state === 'all' ? '' : state;
  const filter = { state: stored, cause, assignee, addr, age, ended_since: since };
  const path = withQuery('/api/drifts', { limit: '50', ...filter });
  const list = useList<Drift>(path);
  const summary = useData<Summary>('/api/drifts/summary', 30_000);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  useEffect(() => setChosen([]), [path]);
  const done = () => {
    setChosen([]);
    list.reload();
    summary.reload();
  };
  const listed = (list.rows ?? []).filter(isUnclosed);
  const choosable = listed.map(({ id }) => id);
  const rows = listed.filter(({ id }) => chosen.includes(id));
  return html`<${View}
    title="Drifts"
    lead="Differences between the service and the ledger that two polls confirmed and no operation
      explains. One owner proposes how a drift ends, another approves."
  >
    <${Failed} problem=${summary.problem} retry=${summary.reload} />
    ${summary.data && html`<${Sums} summary=${summary.data} />`}
    <${Card}>
      <${Filters}
        ...${{ state, cause, assignee, addr, age, since }}
        ages=${summary.data?.by_age ?? []}
      />
    <//>
    <${Card}>
      <div class="actions" role="group" aria-label="Orders for the chosen drifts">
        <label class="check">
          <input
            type="checkbox"
            checked=${rows.length > 0 && rows.length === choosable.length}
            disabled=${choosable.length === 0}
            onChange=${() => setChosen(rows.length === choosable.length ? [] : choosable)}
          />
          All ${countText(choosable.length)}${list.more && ' of this list'}
        </label>
        <span class="muted">${countText(rows.length)} chosen</span>
        <${Assign} drifts=${rows} done=${done} />
        <${Propose} drifts=${rows} kind="book" done=${done} />
        <${Propose} drifts=${rows} kind="dismiss" done=${done} />
        ${rows.some((row) => waitingOf(row)) && html`<${Approve} drifts=${rows} done=${done} />`}
      </div>
      <${ListTable}
        list=${list}
        file=${drift}
        columns=${columnsOf(chosen, setChosen)}
        keyOf=${({ id }: Drift) => id}
        empty=${
          state === 'unclosed'
            ? 'No drift is open: every conclusive observation agrees with the ledger.'
            : 'No drift matches.'
        }
      />
    <//>
  <//>`;
}

interface FilterProps {
  state: string;
  cause: string;
  assignee: string;
  addr: string;
  age: string;
  since: string;
  ages: Summary['by_age'];
}

function Filters({ state, cause, assignee, addr, age, since, ages }: FilterProps) {
  const find = (event: Event) => {
    const { assignee: to = '', addr: of = '' } = valuesOf(event);
    setQuery({ assignee: to, addr: of });
  };
  const states = [
    ['unclosed', 'open or proposed'],
    ['all', 'any state'],
  ].concat(DRIFT_STATES.map((name) => [name, wordsOf(name)]));
  const causes = [
    ['', 'any cause'],
    ...Object.entries(CAUSE_WORDS).map(([name, [short]]) => [name, short]),
  ];
  const aged = ages.map(({ order, bucket }) => [String(order), bucket]);
  return html`<form class="filters" onSubmit=${find} role="search">
    <${Choice}
      name="State"
      value=${state}
      options=${states}
      onChange=${(value: string) => setQuery({ state: value })}
    />
    <${Choice}
      name="Probable cause"
      value=${cause}
      options=${causes}
      onChange=${(value: string) => setQuery({ cause: value })}
    />
    <${Choice}
      name="Age"
      value=${age}
      options=${[['', 'any age'], ...aged]}
      onChange=${(value: string) => setQuery({ age: value })}
    />
    <label class="field">
      <span>Assigned to</span>
      <${FilterInput} name="assignee" value=${assignee} />
    </label>
    <label class="field grow">
      <span>Wallet</span>
      <${FilterInput} name="addr" type="search" value=${addr} placeholder="0x…" />
    </label>
    <button type="submit">Find</button>
    ${
      since &&
      html`<${Chip}
        text=${`Ended since ${instantText(since).slice(0, 10)}`}
        remove=${() => setQuery({ ended_since: '' })}
      />`
    }
  </form>`;
}

/** How many are open by age and by cause; a transfer made elsewhere is two drifts, one finding. */
function Sums({ summary: { by_age: ages, by_cause: causes, ended } }: { summary: Summary }) {
  const sums = ({ up, down }: Sums) =>
    [up, down].filter((of) => of !== '0').map((of) => html` · <${Amount} of=${of} signed />`);
  const isOld = (bucket: string) => bucket.endsWith(' d');
  const ageTile = (age: Summary['by_age'][number]) =>
    html`<a
      class=${`tile ${isOld(age.bucket) ? 'bad' : 'warn'}`}
      href=${`/drifts?age=${age.order}`}
    >
      <b>${countText(age.drifts)}</b><span>aged ${age.bucket}${sums(age)}</span>
    </a>`;
  return html`<div class="tiles">
    ${ages.map(ageTile)}
    ${causes.map(
      (one) => html`<a class="tile" href=${`/drifts?cause=${one.cause}`}>
        <b>${countText(one.drifts)}</b><span>${CAUSE_WORDS[one.cause][0]}</span>
      </a>`,
    )}
    <a class="tile" href=${`/drifts?state=all&ended_since=${ended.since}`}>
      <b>${countText(ended.drifts)}</b>
      <span>
        ended in 30 days${
          ended.median_s !== null && `, after ${durationText(ended.median_s * 1_000)} (median)`
        }
      </span>
    </a>
  </div>`;
}

function columnsOf(chosen: readonly string[], setChosen: (ids: readonly string[]) => void) {
  const toggle = (id: string) =>
    setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return [
    {
      head: 'Choose',
      of: (drift: Drift) =>
        isUnclosed(drift)
          ? html`<input
              type="checkbox"
              aria-label=${`Choose the drift of ${drift.addr}`}
              checked=${chosen.includes(drift.id)}
              onChange=${() => toggle(drift.id)}
            />`
          : '',
    },
    ...columnsFor(drift, {
      suspected_at: {
        of: ({ id, suspected_at: at }) => html`<a href=${`/drifts/${id}`}><${Time} at=${at} /></a>`,
      },
      id: null,
      addr: { head: 'What happened', of: (row) => html`<${Sentence} of=${row} />` },
      amount: { of: ({ amount }) => html`<${Amount} of=${amount} signed />` },
      state: {
        of: ({ state, proposal }) =>
          html`<span>
            <${State} of=${state} />
            ${
              state === 'proposed' && proposal && html` ${proposal.kind} by ${proposal.proposed_by}`
            }
          </span>`,
      },
      cause: { of: ({ cause }) => CAUSE_WORDS[cause][0] },
    }),
  ];
}
