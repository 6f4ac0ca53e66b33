/** Orders about drifts, of one or of many: assign, propose (which changes nothing), approve. */

import { consequenceOf, isUnclosed } from '../../../../resources/ledger/drift-words.ts';
import type { ProposalKind } from '../../../../resources/operations/decision.ts';
import type { Shown } from '../../../../resources/resource.ts';
import type { driftResults } from '../../../../resources/results.ts';
import { call, Problem, useList, withQuery } from '../../kit/api.ts';
import { DECIDE, type Field, Order, REASON, valuesOf } from '../../kit/dialog.ts';
import { Code, ListTable } from '../../kit/elements.ts';
import { countText, shortText, signedText } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import { type Operation, operationColumns } from '../operations/operations.ts';
import { type Drift, readersTexts } from './drift-words.ts';

type Results = Shown<typeof driftResults>;

/** As many as the API takes in one request. */
const AT_ONCE = 200;

/** Carries an order out for each drift; refusals are shown together. */
async function forEach(action: string, drifts: readonly Drift[], body: object) {
  const ids = drifts.map(({ id }) => id);
  const data: Results['data'] = [];
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const part = { ids: ids.slice(from, from + AT_ONCE), ...body };
    data.push(...(await call<Results>('POST', `/api/drifts/${action}`, part)).data);
  }
  const refused = data.flatMap(({ problem }) => (problem ? [problem.detail ?? problem.title] : []));
  if (refused.length === 0) return;
  const done = data.length - refused.length;
  const rest = data.length > 1 ? ` ${done} of ${data.length} are done.` : '';
  throw new Problem(409, 'refused', `${[...new Set(refused)].slice(0, 3).join('. ')}.${rest}`);
}

interface OrderProps {
  drifts: readonly Drift[];
  done: () => void;
}

export function Assign({ drifts, done }: OrderProps) {
  const [first] = drifts;
  const fields: Field[] = [
    {
      name: 'assignee',
      label: 'Person',
      optional: true,
      value: drifts.length === 1 ? (first?.assignee ?? '') : '',
      hint: 'The owner of a key. Empty: no one',
    },
  ];
  return html`<${Order}
    needs=${DECIDE}
    label="Assign"
    kind="quiet"
    text="Says who looks into it. The drift stays open."
    disabled=${drifts.length === 0}
    fields=${fields}
    order=${({ assignee = null }: { assignee?: string | null }) =>
      forEach('assign', drifts, { assignee })}
    done=${done}
  />`;
}

const WHY: Field = { ...REASON, hint: 'What happened, and where it can be verified' };

const PROPOSE: Record<'book' | 'dismiss', [label: string, text: string]> = {
  book: [
    'Propose to book',
    'Nothing is posted until another owner approves. Then the difference is moved to the ' +
      'account external, so that ledger and service agree.',
  ],
  dismiss: [
    'Propose to dismiss',
    'Nothing changes until another owner approves. A dismissed drift posts nothing; if the ' +
      'difference is still observed, it becomes a new drift.',
  ],
};

/** How many, and what they come to; ups and downs are never netted. */
function Together({ of: drifts }: { of: readonly Drift[] }) {
  const sum = (isUp: boolean) =>
    drifts
      .map(({ amount }) => BigInt(amount ?? 0))
      .filter((amount) => amount !== 0n && amount > 0n === isUp)
      .reduce((all, amount) => all + amount, 0n);
  const inexact = drifts.filter(({ amount }) => amount === null).length;
  const parts = [sum(true), sum(false)].filter((each) => each !== 0n);
  return html`<p>
    ${countText(drifts.length)} ${drifts.length === 1 ? 'drift' : 'drifts'}:${' '}
    ${parts.map((each) => signedText(String(each))).join(' and ') || 'no amount'}
    ${inexact > 0 && `, ${countText(inexact)} of them not exact yet`}.
  </p>`;
}

/** What is approved at once, each with its reason. */
function Reasons({ of: drifts }: { of: readonly Drift[] }) {
  return html`<ul class="reasons">
    ${drifts.map(({ id, amount, addr, proposal }) => {
      const of = amount === null ? 'a drift' : signedText(amount);
      return html`<li key=${id}>
        ${proposal?.kind} ${of} on ${shortText(addr)}: “${proposal?.reason}”
        (${proposal?.proposed_by})
      </li>`;
    })}
  </ul>`;
}

/** Proposes for all of them, quietly. */
export function Propose({ drifts, kind, done }: OrderProps & { kind: 'book' | 'dismiss' }) {
  const [label, text] = PROPOSE[kind];
  return html`<${Order}
    needs=${DECIDE}
    label=${label}
    kind="quiet"
    text=${html`<p>${text}</p><${Together} of=${drifts} />`}
    disabled=${drifts.length === 0}
    fields=${[WHY]}
    order=${(values: object) => forEach('propose', drifts, { proposal: kind, ...values })}
    done=${done}
  />`;
}

/** The proposal that was made and waits for the approval of another owner. */
export function waitingOf(drift: Drift) {
  const { state, proposal } = drift;
  if (!proposal || proposal.approved_by) return undefined;
  const isLater = state === 'booked' && proposal.kind === 'link';
  return isUnclosed(drift) || isLater ? proposal : undefined;
}

/** Approving posts to the ledger: the one dangerous button. */
export function Approve({ drifts, done }: OrderProps) {
  const waiting = drifts.filter((drift) => waitingOf(drift));
  const [only] = waiting;
  const kind = only?.proposal?.kind ?? 'book';
  const isOne = waiting.length === 1 && only;
  const text = isOne
    ? consequenceOf(kind, only.amount, readersTexts())
    : 'Each proposal is carried out: bookings and linked operations are posted to the ledger.';
  const expected = isOne ? { n: only.proposal?.n, proposal: kind } : {};
  return html`<${Order}
    needs=${DECIDE}
    label=${isOne ? `Approve: ${kind}` : `Approve ${waiting.length} proposals`}
    kind="danger"
    text=${html`<p>${text} The owner who proposed it cannot approve it.</p>
      <${Together} of=${waiting} />
      ${!isOne && html`<${Reasons} of=${waiting} />`}`}
    disabled=${waiting.length === 0}
    proposedBy=${isOne ? only.proposal?.proposed_by : undefined}
    order=${() => forEach('approve', waiting, expected)}
    done=${done}
  />`;
}

const OPERATION_COLUMNS = operationColumns(['recorded_at', 'kind', 'state', 'amount', 'reference']);

/** A search for the operation that explains the drift; only one of exactly its effect is taken. */
export function LinkSearch({ drift, done }: { drift: Drift; done: () => void }) {
  const [text, setText] = useState('');
  const filter = /^\d+$/.test(text) ? { tx_log_no: text } : { reference: text };
  const list = useList<Operation>(
    withQuery('/api/operations', { limit: '5', addr: drift.addr, ...filter }),
  );
  const find = (event: Event) => setText(valuesOf(event).text ?? '');
  return html`<form class="filters" onSubmit=${find} role="search">
      <label class="field grow">
        <span>Reference or number of an operation of this wallet</span>
        <input name="text" type="search" spellcheck=${false} />
      </label>
      <button type="submit" class="quiet">Find</button>
    </form>
    <${ListTable}
      list=${list}
      keyOf=${({ id }: Operation) => id}
      empty="No operation of this wallet matches."
      columns=${[...OPERATION_COLUMNS, linkColumn(drift, done)]}
    />`;
}

/** The ledger had counted it when the drift was confirmed, so it cannot explain the drift. */
function wasCounted(row: Operation, { opened_at: opened }: Drift): boolean {
  const known = [row.recorded_at, row.answered_at, row.settled_at].map((at) =>
    Date.parse(at ?? ''),
  );
  return row.outcome === 'executed' && !known.some((at) => at >= Date.parse(opened));
}

function linkColumn(drift: Drift, done: () => void) {
  const proposal: ProposalKind = 'link';
  return {
    head: 'Link',
    of: (row: Operation) =>
      wasCounted(row, drift) ? html`<span class="muted">already counted</span>` : linkOrder(row),
  };
  function linkOrder({ id }: Operation) {
    return html`<${Order}
    needs=${DECIDE}
      label="Propose to link"
      kind="quiet"
      text=${html`Nothing changes until another owner approves. Then
        <${Code} text=${id} /> counts as executed and is posted. Its effect must equal the drift.`}
      fields=${[WHY]}
      order=${(values: object) =>
        call('POST', `/api/drifts/${drift.id}/propose`, {
          proposal,
          operation_id: id,
          ...values,
        })}
      done=${done}
    />`;
  }
}
