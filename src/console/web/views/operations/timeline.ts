/** What happened to an operation, in words and the order of time: from its intent to receivers. */

import type { operationDetail } from '../../../../resources/operations/operation.ts';
import type { timeline } from '../../../../resources/operations/timeline.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useData } from '../../kit/api.ts';
import { Amount, Code, Failed, State, Time, WalletLink } from '../../kit/elements.ts';
import { instantText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { causeWords } from './evidence-words.ts';

type Recorded = Pick<Shown<typeof operationDetail>, 'transitions' | 'sends' | 'decisions'>;
type Later = Shown<typeof timeline>;
type Observation = Later['observations'][number];
type Posting = Later['postings'][number];
type Movement = Later['movements'][number];
type Delivery = Later['events'][number]['deliveries'][number];

interface Line {
  at: string;
  what: unknown;
}

/** What the operation itself records, and as soon as it is loaded what later stages recorded. */
export function Timeline({ operation, path }: { operation: Recorded; path: string }) {
  const { data, problem, reload } = useData<Later>(`${path}/timeline`, 10_000);
  const lines = [...ownLines(operation), ...(data ? laterLines(data) : [])];
  const ordered = lines.toSorted((a, b) => a.at.localeCompare(b.at));
  return html`<ol class="timeline">
      ${ordered.map(
        ({ at, what }) => html`<li><${Time} at=${at} exact /><span>${what}</span></li>`,
      )}
    </ol>
    <${Failed} problem=${problem} retry=${reload} />`;
}

function ownLines({ transitions, sends, decisions }: Recorded): Line[] {
  return [
    ...transitions.map(({ at, to_state: state, cause }) => ({
      at,
      what: html`<${State} of=${state} /> <span>${causeWords(cause)}</span>`,
    })),
    ...sends.map(({ n, started_at: at, deadline_at: until, after }) => ({
      at,
      what: `send ${n}, deadline ${instantText(until)}${after ? `, after ${wordsOf(after)}` : ''}`,
    })),
    ...decisions.flatMap((d) => [
      {
        at: d.proposed_at,
        what: `${d.proposed_by} proposed ${wordsOf(d.outcome)}: ${d.reason}`,
      },
      ...(d.approved_at ? [{ at: d.approved_at, what: `${d.approved_by} approved it` }] : []),
    ]),
  ];
}

function laterLines({ observations, postings, movements, events }: Later): Line[] {
  return [
    ...observations.map((one) => ({ at: one.unchanged_since, what: observationWords(one) })),
    ...postings.map((one) => ({ at: one.recorded_at, what: postingWords(one) })),
    ...movements.map((one) => ({ at: one.recorded_at, what: movementWords(one) })),
    ...events.flatMap(({ id, type, recorded_at: at, deliveries }) => [
      { at, what: html`event ${type} <${Code} text=${id} />` },
      ...deliveries.map((one) => ({
        at: one.finished_at ?? one.created_at,
        what: deliveryWords(type, one),
      })),
    ]),
  ];
}

/** A series of polls with one result: what it showed, and until when. */
function observationWords({ target, result, balance, owner, ended_at: until }: Observation) {
  const [kind, name = '', token] = target.split(':');
  const what =
    kind === 'wallet'
      ? html`wallet <${WalletLink} addr=${name} />`
      : html`<a href=${`/tokens/${name}/${token}`}>token ${name}/${token}</a>`;
  const end = html`<span class="muted">until <${Time} at=${until} exact /></span>`;
  if (result === 'absent') return html`observed: ${what} was not found, ${end}`;
  if (result === 'inconclusive') return html`observed: ${what} could not be read`;
  return kind === 'wallet'
    ? html`observed: ${what} held <${Amount} of=${balance} />, ${end}`
    : html`observed: ${what}
        ${owner ? html` belonged to <${WalletLink} addr=${owner} />` : ' had no owner'}, ${end}`;
}

function postingWords({ transaction_id: id, kind, reverses, entries }: Posting) {
  const lines = entries.map(({ account, amount }, n) => {
    const addr = /^wallet:(.+)$/.exec(account)?.[1];
    const name = addr
      ? html`wallet <${WalletLink} addr=${addr} />`
      : `${account.replace(':', ' ')}:`;
    return html`${n > 0 ? ', ' : ''}${name} <${Amount} of=${amount} signed />`;
  });
  return reverses === null
    ? html`posted as ${wordsOf(kind)}, transaction ${id}: ${lines}`
    : html`transaction ${reverses} reversed by transaction ${id}: ${lines}`;
}

function movementWords({ kind, from_addr: from, to_addr: to }: Movement) {
  return html`the ledger records the token's ${wordsOf(kind)}
    ${from && html` from <${WalletLink} addr=${from} />`}
    ${to && html` to <${WalletLink} addr=${to} />`}`;
}

function deliveryWords(type: string, { id, endpoint_id: endpoint, state, attempts }: Delivery) {
  const times = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  return html`<a href=${`/deliveries/${id}`}>webhook of ${type}</a> to${' '}
    <${Code} text=${endpoint} href=${`/endpoints/${endpoint}`} />${' '}
    <${State} of=${state} /> <span class="nowrap">${times}</span>`;
}
