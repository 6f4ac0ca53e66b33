/** Drifts in words: what happened to the wallet, what may have caused it, and how it may end. */

import type { Cause, DriftState, drift } from '../../../../resources/ledger/drift.ts';
import {
  CAUSE_WORDS,
  changeText,
  circumstancesText,
  ENDING_WORDS,
  proposalText,
  type Texts,
} from '../../../../resources/ledger/drift-words.ts';
import type { ProposalKind } from '../../../../resources/operations/decision.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { Code, Time, WalletLink } from '../../kit/elements.ts';
import { amountText, instantText, readersNow, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

export type Drift = Shown<typeof drift>;

/** Amounts and instants as the reader sees them. */
export const readersTexts = (): Texts => ({
  amount: amountText,
  time: (at) => instantText(at),
  today: instantText(readersNow()).split(' ')[0] ?? '',
});

/** One sentence that a person understands. */
export function Sentence({ of: drift }: { of: Drift }) {
  const texts = readersTexts();
  const wallet = html`<${WalletLink} addr=${drift.addr} />`;
  return html`<span class="sentence"
    >${changeText(drift, texts)} wallet ${wallet} ${circumstancesText(drift, texts)}</span
  >`;
}

/** What a proposal would do, with a link to its operation. */
export function ProposalText({
  kind,
  operation,
}: {
  kind: ProposalKind;
  operation: string | null;
}) {
  if (kind !== 'link' || !operation) return proposalText(kind, operation);
  return html`link it to <${Code} text=${operation} href=${`/operations/${operation}`} />`;
}

type Found = Record<string, unknown>;
const found = (value: unknown): Found => (value ?? {}) as Found;
const textOf = (value: unknown) => (typeof value === 'string' ? value : '');

const longCause = (cause: Cause) => CAUSE_WORDS[cause]?.[1] ?? wordsOf(cause);

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
  for (const id of drift.operator?.gives ?? [])
    lines.push(html`It equals what <${Code} text=${id} href=${`/operations/${id}`} /> gave.`);
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
      return min === max
        ? `the amount is now known: ${min}`
        : `the amount is now known to be between ${min} and ${max}`;
    }
    case 'paired':
      return html`paired with
        <a href=${`/drifts/${textOf(of.with)}`}>the drift of another wallet</a>`;
    case 'recognised':
      return `recognised as gives of operator ${textOf(of.operator_no)}`;
    case 'assigned':
      return of.assignee ? `assigned to ${textOf(of.assignee)}` : 'assigned to no one';
    case 'proposed':
      return html`proposed to <${ProposalText} kind=${kind} operation=${operation} />${reason}`;
    case 'approved':
      return html`approved to <${ProposalText} kind=${kind} operation=${operation} />; another
        approval is needed`;
    default:
      return html`${wordsOf(action)}: ${ENDING_WORDS[action as DriftState] ?? ''}${reason}`;
  }
}
