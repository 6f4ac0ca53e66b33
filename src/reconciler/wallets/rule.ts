/**
 * Compares an observed balance with the expected one. Pure.
 *
 * An observation is true at some instant between the start s and the end e of its request. It
 * includes operations that took effect before s − L (required), excludes those sent after e, and
 * may include all others (possible). L is the read lag of the service. Source: ledger study, 7.2.
 */

import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';
import type { Operation } from '../../operations/operations.ts';

/** An operation and its effect on one wallet. */
export interface OperationEffect {
  operation: Operation;
  effect: bigint;
  /** Whether the ledger's balance contains it. */
  posted: boolean;
}

export interface ObservedBalance {
  balance: bigint;
  startedAt: Instant;
  endedAt: Instant;
}

/** What an observation is compared with, read in one snapshot. */
export interface Baseline {
  /** The ledger's balance of the wallet, posting requests included. */
  ledger: bigint;
  /** The version of its account in the ledger; 0 without an account. */
  version: bigint;
  /** The sum of its open drifts. */
  drift: bigint;
  /** Operations on it that are open, not yet posted, or recent. */
  effects: readonly OperationEffect[];
  /** False when there are more such operations than were read. */
  complete: boolean;
}

export interface Expectation {
  /** The ledger, required operations that are not posted, and open drifts. */
  base: bigint;
  possible: OperationEffect[];
  complete: boolean;
}

export function expectationOf(
  observed: ObservedBalance,
  baseline: Baseline,
  lagMs: number,
): Expectation {
  let base = baseline.ledger + baseline.drift;
  const possible: OperationEffect[] = [];
  for (const one of baseline.effects) {
    const { operation, effect } = one;
    if (effect === 0n) continue;
    if (one.posted) base -= effect;
    const inclusion = inclusionOf(operation, observed, lagMs);
    if (inclusion === 'required') base += effect;
    if (inclusion === 'possible') possible.push(one);
  }
  return { base, possible, complete: baseline.complete };
}

/** Whether an observation includes an operation. */
export type Inclusion = 'required' | 'possible' | 'excluded';

export function inclusionOf(
  operation: Operation,
  observed: ObservedBalance,
  lagMs: number,
): Inclusion {
  const { outcome, sentAt, effectiveAt, recordedAt } = operation;
  if (outcome === 'not_executed') return 'excluded';
  // A reported operation has no time of sending. Equal milliseconds leave the order open.
  if ((sentAt ?? effectiveAt ?? recordedAt) > observed.endedAt) return 'excluded';
  if (outcome === 'open') return 'possible';
  const tookEffectBy = effectiveAt ?? operation.answeredAt ?? recordedAt;
  return tookEffectBy < observed.startedAt - lagMs ? 'required' : 'possible';
}

export type BalanceResult =
  /**
   * `shown` are the possible operations that the balance includes. `quiet`: there is one
   * explanation, and no operation was possible except undecided ones.
   */
  | { result: 'explained'; quiet: boolean; unique: boolean; shown: OperationEffect[] }
  | { result: 'unexplained'; residual: bigint }
  | { result: 'inconclusive'; cause: 'no_subset_explains' | 'too_many_open' };

/**
 * Compares a balance with the expected one. Undecided operations explain it if a subset fits.
 * Otherwise they count with the outcome that their evidence indicates, so that they cannot hide a
 * drift: an outside change of 7 is a drift of 7, whether or not the balance includes them.
 */
export function evaluateBalance(balance: bigint, expectation: Expectation): BalanceResult {
  const { base, possible, complete } = expectation;
  const residual = balance - base;
  const vectors = possible.map(({ effect }) => [effect]);
  const found = complete ? subsetsWithSum(vectors, [residual], 2) : 'too_many';
  if (found === 'too_many') return { result: 'inconclusive', cause: 'too_many_open' };
  const undecidedOnly = possible.every(({ operation }) => operation.state === 'undecided');
  const [first] = found;
  if (first) {
    const shown = first.flatMap((i) => possible[i] ?? []);
    const unique = found.length === 1;
    return { result: 'explained', quiet: undecidedOnly && unique, unique, shown };
  }
  if (undecidedOnly)
    return { result: 'unexplained', residual: residual - indicatedEffect(possible) };
  return { result: 'inconclusive', cause: 'no_subset_explains' };
}

function indicatedEffect(undecided: readonly OperationEffect[]): bigint {
  return sumOf(
    undecided.flatMap(({ operation, effect }) => (isIndicatedExecuted(operation) ? [effect] : [])),
  );
}

function isIndicatedExecuted({ evidence }: Operation): boolean {
  const known = evidence && typeof evidence === 'object' && !Array.isArray(evidence);
  return known === true && evidence.indicated === 'executed';
}
