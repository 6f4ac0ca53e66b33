/**
 * Observed balances vote on the fee rule. An open drift on a payer that equals what the other rule
 * would change votes for the other rule. Every other write with a fee that settled since the first
 * of them votes for the rule that is set. At least two votes that are the majority are a
 * contradiction: one finding, however many drifts there are.
 */
import type { Queryable } from '../../db/connect.ts';
import { type FeeVotes, feeVotes } from './fee-votes-store.ts';
import type { Condition } from './rule.ts';

export const CONTRADICTED = 'ledger.fee_rule_contradicted';

/** One difference of a fee may be a coincidence. */
const VOTES_MIN = 2;

export async function checkFeeRule(db: Queryable): Promise<Condition[]> {
  const votes = await feeVotes(db);
  return votes && isContradicted(votes) ? [conditionOf(votes)] : [];
}

/** Whether the votes for the other rule decide. Pure. */
export function isContradicted({ against, settled }: FeeVotes): boolean {
  return against >= VOTES_MIN && against > settled - against;
}

function conditionOf({ against, settled, operationId, mode }: FeeVotes): Condition {
  const detail = {
    setting: 'ledger.fee_mode',
    set: mode,
    observed: mode === 'on_top' ? 'deducted' : 'on_top',
    votes_against: against,
    votes_for: Math.max(0, settled - against),
    operation_id: operationId,
  };
  return { rule: CONTRADICTED, subject: 'ledger.fee_mode', detail };
}
