/** Drifts in words: what happened to the wallet, what may have caused it, and how it may end. */

import { Code, Time, WalletLink } from '../../kit/elements.ts';
import { amountText, instantText, readersNow, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

export type ProposalKind = 'book' | 'link' | 'dismiss';

export interface Proposal {
  n: number;
  kind: ProposalKind;
  operation_id: string | null;
  reason: string;
  proposed_by: string;
  proposed_at: string;
  approvals_needed: number;
  approvals: { owner: string; at: string }[];
  approved_by: string | null;
  approved_at: string | null;
}

export interface Drift {
  id: string;
  addr: string;
  amount: string | null;
  amount_min: string;
  amount_max: string;
  state: string;
  suspected_at: string;
  opened_at: string;
  closed_at: string | null;
  window_from: string | null;
  window_to: string;
  evidence: unknown;
  cause: string;
  prepared: { drift_id: string; proposal: ProposalKind; operation_id: string | null } | null;
  counterpart: string | null;
  assignee: string | null;
  proposal: Proposal | null;
  closed_by: unknown;
}

/** Probable causes, as the API names them, in short and in full. */
const CAUSE_TEXTS = [
  ['made_elsewhere', 'made elsewhere', 'a change made elsewhere, not through Tallyhook'],
  [
    ...['fee_rule', 'another fee rule'],
    'the service charges fees by another rule than the configured one',
  ],
  [
    ...['lost_operation', 'an operation of ours'],
    'an operation of ours that counts as not executed or became known later',
  ],
  [
    ...['opening', 'before the opening'],
    'a change that happened before the opening of the wallet in the ledger',
  ],
] as const;
export const CAUSES: Record<string, string> = Object.fromEntries(
  CAUSE_TEXTS.map(([name, short]) => [name, short]),
);

export const isUnclosed = ({ state }: { state: string }) =>
  state === 'open' || state === 'proposed';

const tokens = (digits: string) => `${amountText(digits)} ${digits === '1' ? 'token' : 'tokens'}`;
const unsigned = (amount: string) => amount.replace('-', '');

/** Such as `3 tokens left`; a range while the amount is not exact. */
export function changeText({ amount, amount_min: min, amount_max: max }: Drift): string {
  if (amount !== null) {
    if (amount === '0') return 'No token moved';
    return `${tokens(unsigned(amount))} ${amount.startsWith('-') ? 'left' : 'arrived at'}`;
  }
  if (max.startsWith('-')) return `${amountText(unsigned(max))} to ${tokens(unsigned(min))} left`;
  if (!min.startsWith('-')) return `${amountText(min)} to ${tokens(max)} arrived at`;
  return `A change between ${amountText(min)} and ${amountText(max)} tokens happened to`;
}

/** Such as `between 22:23:05 and 22:24:10`, with the day when it is not today. */
export function windowText({ window_from: from, window_to: to }: Drift): string {
  const [today] = instantText(readersNow()).split(' ');
  const [day, time] = instantText(to).split(' ');
  const end = day === today ? time : `${day} ${time}`;
  if (from === null) return `before ${end}`;
  const [firstDay, firstTime] = instantText(from).split(' ');
  const start = firstDay === today || firstDay === day ? firstTime : `${firstDay} ${firstTime}`;
  if (firstDay !== day || day === today) return `between ${start} and ${end}`;
  return `on ${day} between ${start} and ${time}`;
}

const ENDINGS: Record<string, string> = {
  booked: 'the difference was booked to the account external',
  linked: 'an operation explains it',
  dismissed: 'it was dismissed without a posting',
  returned: 'a later observation did not show it any more',
  explained: 'operations explain it',
  merged: 'it became part of another drift',
};

/** One sentence that a person understands. */
export function Sentence({ of: drift }: { of: Drift }) {
  const ending = ENDINGS[drift.state] ?? 'none of our operations explains it';
  const text = `${windowText(drift)}; ${ending}.`;
  const wallet = html`<${WalletLink} addr=${drift.addr} />`;
  return html`<span class="sentence">${changeText(drift)} wallet ${wallet} ${text}</span>`;
}

/** What a proposal would do, with its operation. */
export function proposalText(kind: ProposalKind, operation: string | null): unknown {
  if (kind === 'book') return 'book the difference to the account external';
  if (kind === 'dismiss') return 'dismiss it without a posting';
  if (!operation) return 'link it to an operation';
  return html`link it to <${Code} text=${operation} href=${`/operations/${operation}`} />`;
}

/** What happens to the ledger when a proposal is approved. */
export function consequenceOf(kind: ProposalKind, amount: string | null): string {
  const count = amount === null ? 'the difference' : tokens(unsigned(amount));
  const way =
    amount === null
      ? 'between the wallet and the account external'
      : amount.startsWith('-')
        ? 'from the wallet to the account external'
        : 'from the account external to the wallet';
  if (kind === 'book') return `The ledger moves ${count} ${way}. A posting is never deleted.`;
  if (kind === 'link')
    return 'The operation becomes executed and the ledger posts it. It cannot be taken back.';
  return 'Nothing is posted. If the difference is still observed, it becomes a new drift.';
}

type Found = Record<string, unknown>;
const found = (value: unknown): Found => (value ?? {}) as Found;
const textOf = (value: unknown) => (typeof value === 'string' ? value : '');

const longCause = (cause: string) =>
  CAUSE_TEXTS.find(([name]) => name === cause)?.[2] ?? wordsOf(cause);

/** Why it is a drift, in sentences. */
export function evidenceTexts(drift: Drift): unknown[] {
  const { evidence, suspected_at: at, counterpart } = drift;
  const { observed_balance, ledger_balance, ruled_out, equals_not_executed } = found(evidence);
  const lines: unknown[] = [];
  if (observed_balance !== undefined)
    lines.push(
      html`The service showed a balance of ${amountText(textOf(observed_balance))}; the ledger had
        ${' '}${amountText(textOf(ledger_balance))} at that time. It was first seen at
        ${' '}<${Time} at=${at} exact /> and confirmed by a second poll.`,
    );
  if (Array.isArray(ruled_out) && ruled_out.length > 0)
    lines.push(`These do not explain it: ${ruled_out.join(', ')}.`);
  if (Array.isArray(equals_not_executed))
    for (const id of equals_not_executed.map(String))
      lines.push(
        html`Its amount equals that of <${Code} text=${id} href=${`/operations/${id}`} />, which
          counts as not executed.`,
      );
  lines.push(`Probable cause: ${longCause(drift.cause)}.`);
  if (counterpart)
    lines.push(
      html`Another wallet changed by the opposite amount at the same time:
        <a href=${`/drifts/${counterpart}`}>its drift</a> is ended together with this one.`,
    );
  return lines;
}

/** One line of the history. */
export function actionText(action: string, detail: unknown): unknown {
  const of = found(detail);
  const operation = textOf(of.operation_id) || null;
  const kind = textOf(of.kind) as ProposalKind;
  const reason = textOf(of.reason) && `: ${textOf(of.reason)}`;
  switch (action) {
    case 'opened':
      return 'opened: a second poll confirmed the difference';
    case 'revised': {
      const [min, max] = [of.amount_min, of.amount_max].map((n) => amountText(textOf(n)));
      return `the amount is now known to be between ${min} and ${max}`;
    }
    case 'paired':
      return html`paired with
        <a href=${`/drifts/${textOf(of.with)}`}>the drift of another wallet</a>`;
    case 'assigned':
      return of.assignee ? `assigned to ${textOf(of.assignee)}` : 'assigned to no one';
    case 'proposed':
      return html`proposed to ${proposalText(kind, operation)}${reason}`;
    case 'approved':
      return html`approved to ${proposalText(kind, operation)}; another approval is needed`;
    default:
      return html`${wordsOf(action)}: ${ENDINGS[action] ?? ''}${reason}`;
  }
}
