/**
 * What a look at a wallet means: the race-aware rule. Pure.
 *
 * A look is true at some instant between the start s and the end e of its request. A write that
 * took effect before s − L must be in it, one that was sent after e cannot be, and every other one
 * may be. L is the read lag of the service. A look is *clean* when nothing was optional. Source:
 * ledger study, 7.2; promise 5.
 */

import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Operation } from '../../operations/operations.ts';
import { subsetsWithSum } from '../unknown/subsets.ts';

/** A write as one wallet sees it. */
export interface Part {
  operation: Operation;
  /** By how much it changes this wallet once executed. */
  effect: bigint;
}

export interface Sight {
  balance: bigint;
  startedAt: Instant;
  endedAt: Instant;
}

/** What a look is compared against, all read in one snapshot. */
export interface Standing {
  /** The ledger's balance of the wallet, wanted postings included. */
  ledger: bigint;
  /** The version of its account in the ledger; 0 while it has none. */
  version: bigint;
  /** The sum of its open drifts. */
  drift: bigint;
  /** Writes that touch it and are open, not yet posted, or recent. */
  parts: readonly Part[];
  /** False when there are more such writes than were read: then nothing can be said. */
  complete: boolean;
}

export interface Expectation {
  /** What the look must show at least: ledger + executed but unposted + drifts, as of the look. */
  base: bigint;
  /** Writes that the look may or may not show. */
  optional: Part[];
  complete: boolean;
}

/** Splits the writes by the look and sums what must be in it. */
export function expectationOf(sight: Sight, standing: Standing, lagMs: number): Expectation {
  let base = standing.ledger + standing.drift;
  const optional: Part[] = [];
  for (const part of standing.parts) {
    if (part.effect === 0n) continue;
    const { operation, effect } = part;
    if (operation.postings % 2 === 1) base -= effect;
    const need = needOf(operation, sight, lagMs);
    if (need === 'must') base += effect;
    if (need === 'may') optional.push(part);
  }
  return { base, optional, complete: standing.complete };
}

/** Whether a look must, may or cannot show a write. */
export function needOf(
  operation: Operation,
  sight: Sight,
  lagMs: number,
): 'must' | 'may' | 'cannot' {
  const { outcome, sentAt, effectiveAt, recordedAt } = operation;
  if (outcome === 'not_executed') return 'cannot';
  // A write that was reported later has no time of sending. Within one millisecond either came
  // first.
  if ((sentAt ?? effectiveAt ?? recordedAt) > sight.endedAt) return 'cannot';
  if (outcome === 'open') return 'may';
  const tookEffectBy = effectiveAt ?? operation.answeredAt ?? recordedAt;
  return tookEffectBy < sight.startedAt - lagMs ? 'must' : 'may';
}

export type WalletVerdict =
  /**
   * The balance is explained; `clean` when nothing was optional, or nothing but what people have to
   * decide and there is one explanation; `shown` are the optional writes in it.
   */
  | { verdict: 'explained'; quiet: boolean; unique: boolean; shown: Part[] }
  /** Nothing was optional, and the balance is off by this much. */
  | { verdict: 'off'; residual: bigint }
  /** Nothing can be said yet: try again later. */
  | { verdict: 'inconclusive'; cause: 'no_subset_explains' | 'too_many_open' };

/**
 * Judges a balance against what was expected. Writes that people have to decide (`undecided`)
 * explain if they can; where they cannot, they count as what the looks believed of them, so that
 * they never hide a drift for ever.
 */
export function judgeBalance(balance: bigint, expectation: Expectation): WalletVerdict {
  const { base, optional, complete } = expectation;
  const residual = balance - base;
  const vectors = optional.map((part) => [part.effect]);
  const found = complete ? subsetsWithSum(vectors, [residual], 2) : 'too_many';
  if (found === 'too_many') return { verdict: 'inconclusive', cause: 'too_many_open' };
  const undecidedOnly = optional.every((part) => part.operation.state === 'undecided');
  const [first] = found;
  if (first) {
    const shown = first.flatMap((i) => optional[i] ?? []);
    const unique = found.length === 1;
    return { verdict: 'explained', quiet: undecidedOnly && unique, unique, shown };
  }
  if (undecidedOnly) return { verdict: 'off', residual: residual - believed(optional) };
  return { verdict: 'inconclusive', cause: 'no_subset_explains' };
}

/**
 * What undecided writes are believed to have done, by the looks that left them to people. Where no
 * subset explains a balance, the change since is told apart from them by that belief, so that an
 * outside change of 7 is a drift of 7 and not of 7 less a write that shows.
 */
function believed(undecided: readonly Part[]): bigint {
  return sumOf(
    undecided.flatMap(({ operation, effect }) => (isBelieved(operation) ? [effect] : [])),
  );
}

function isBelieved({ evidence }: Operation): boolean {
  const known = evidence && typeof evidence === 'object' && !Array.isArray(evidence);
  return known === true && evidence.belief === 'executed';
}
