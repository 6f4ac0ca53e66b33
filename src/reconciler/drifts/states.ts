/** The states of drifts, and which proposals people may make in them. Pure. */
import { decimalText } from '../../kernel/amounts.ts';
import { Failure } from '../../kernel/errors.ts';
import type { DriftState } from '../../resources/ledger/drift.ts';
import type { ProposalKind } from '../../resources/operations/decision.ts';
import type { Drift } from './drift.ts';

/**
 * Which state may follow which; a trigger refuses every other. An observation ends a drift as
 * `returned`, as `explained` by operations, or as `merged` into another drift; an approved proposal
 * ends it in any other way. A booked drift may be linked later.
 */
export const FOLLOWS: Readonly<Record<DriftState, readonly DriftState[]>> = {
  open: ['proposed', 'returned', 'explained', 'merged'],
  proposed: ['booked', 'linked', 'dismissed', 'returned', 'explained', 'merged'],
  booked: ['linked'],
  linked: [],
  dismissed: [],
  returned: [],
  explained: [],
  merged: [],
};

/** The state in which an approved proposal leaves the drift. */
export const ENDED_BY = {
  book: 'booked',
  link: 'linked',
  dismiss: 'dismissed',
} as const satisfies Record<ProposalKind, DriftState>;

/** @throws Failure `conflict` with the reason when the drift cannot be ended by such a proposal */
export function assertProposable(drift: Drift, proposal: ProposalKind): void {
  const { id, state, amount, min, max } = drift;
  const isOpen = state === 'open' || state === 'proposed';
  if (!isOpen && !FOLLOWS[state].includes(ENDED_BY[proposal]))
    throw refusal(id, `it is ${state}${state === 'booked' ? ', and can only be linked' : ''}`);
  if (amount !== null || proposal === 'dismiss') return;
  const bounds = `${decimalText(min)} and ${decimalText(max)}`;
  throw refusal(id, `its amount is only known to be between ${bounds} while operations are open`);
}

export function refusal(driftId: string, why: string): Failure {
  return new Failure('conflict', `${driftId}: ${why}`, { drift_id: driftId });
}
