/**
 * The probable cause of a drift, and the proposal that fits it. Pure. It is only a suggestion:
 * people propose, and another owner approves.
 */
import { sumOf } from '../../kernel/amounts.ts';
import type { Cause, drift } from '../../resources/ledger/drift.ts';
import type { Row } from '../../resources/resource.ts';

/**
 * A proposal that only needs a reason and an owner to make it, about this drift or an earlier one
 * that was booked.
 */
export type Prepared = NonNullable<Row<typeof drift>['prepared']>;

/** The operator that seems to pay from the wallet, and its gives that the drift equals. */
export type OperatorGives = NonNullable<Row<typeof drift>['operator']>;

/** What is known about a drift of an exact amount. */
export interface Facts {
  driftId: string;
  amount: bigint;
  /** Operations that count as not executed, or are undecided, and would explain it. */
  lost: readonly string[];
  /**
   * An earlier drift of the opposite amount on the wallet that was booked, and an operation that
   * became known since and explains it.
   */
  booked: { driftId: string; operationId: string } | undefined;
  /** By how much the other fee rule would change the effect of each operation in the window. */
  otherFeeRule: readonly bigint[];
  /** Nothing explained the wallet since the observation that its opening rests on. */
  sinceOpening: boolean;
}

export function probableCause(facts: Facts): { cause: Cause; prepared: Prepared | null } {
  const { driftId, amount, lost, booked, otherFeeRule, sinceOpening } = facts;
  const book: Prepared = { drift_id: driftId, proposal: 'book', operation_id: null };
  if (booked) {
    const { driftId: drift_id, operationId: operation_id } = booked;
    return { cause: 'lost_operation', prepared: { drift_id, proposal: 'link', operation_id } };
  }
  const [first, second] = lost;
  if (first !== undefined) {
    const link: Prepared = { drift_id: driftId, proposal: 'link', operation_id: first };
    return { cause: 'lost_operation', prepared: second === undefined ? link : book };
  }
  const isFee = sumOf(otherFeeRule) === amount || otherFeeRule.includes(amount);
  if (otherFeeRule.length > 0 && isFee) return { cause: 'fee_rule', prepared: book };
  return { cause: sinceOpening ? 'opening' : 'made_elsewhere', prepared: book };
}

/**
 * The amounts that the other drift of one transfer has: the payer pays what the receiver gets, and
 * maybe the usual fee.
 */
export function counterpartAmounts(amount: bigint, usualFee: bigint): bigint[] {
  const withFee = -amount - usualFee;
  return amount < 0n && withFee <= 0n ? [-amount] : [...new Set([-amount, withFee])];
}
