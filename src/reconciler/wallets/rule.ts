/**
 * Compares an observed balance with the expected one. Pure.
 *
 * The observation includes all required operations, some of the possible ones, and none of the
 * others; `tallyhook.expected_balance` tells them apart and sums them. What the ledger, the
 * required operations and a subset of the possible ones do not account for is the difference.
 * Source: ledger study, 7.2.
 */
import { sumOf, wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';

/** Both ends included. */
export interface Range {
  min: bigint;
  max: bigint;
}

/** An operation that an observation may include, and its effect on the wallet. */
export interface PossibleOperation {
  id: string;
  effect: bigint;
  state: string;
  outcome: 'executed' | 'open';
  /** Until when it might have been sent. */
  deadlineAt: Instant;
  /** Of an undecided one: the outcome that its evidence indicates. */
  indicated: string | null;
}

/** What an observation is compared with, read in one statement. */
export interface Expectation {
  /** The ledger with all required operations, and without all others. */
  base: bigint;
  /** The possible operations; undefined when there are more than can be tried as subsets. */
  possible: readonly PossibleOperation[] | undefined;
  /** The sums of those that increase the balance, and of those that decrease it. */
  up: bigint;
  down: bigint;
}

/** At most so many possible operations are tried as subsets. */
export const POSSIBLE_MAX = 12;

export type Comparison =
  | {
      result: 'explained';
      /** One subset of the possible operations, and no other, explains the balance. */
      unique: boolean;
      /** No operation was possible, except undecided ones, and the explanation is unique. */
      quiet: boolean;
      /** Ids of the possible operations that the balance includes; none unless unique. */
      shown: string[];
      /** What open drifts have to account for. */
      difference: Range;
    }
  | { result: 'unexplained'; difference: Range };

/**
 * Compares a balance with the expected one. It is explained when a subset of the possible
 * operations leaves a difference that the open drifts account for; with too many of them, when the
 * difference may lie there.
 *
 * Undecided operations alone cannot hide a drift: where no subset fits, they count with the outcome
 * that their evidence indicates. An outside change of 7 is a difference of 7, whether or not the
 * balance includes them.
 * @param drift the sum of the open drifts
 */
export function compareBalance(
  balance: bigint,
  { base, possible, up, down }: Expectation,
  drift: Range,
): Comparison {
  const residual = balance - base;
  if (!possible) {
    const difference = { min: residual - up, max: residual - down };
    const found = intersection(difference, drift);
    return found
      ? { result: 'explained', unique: false, quiet: false, shown: [], difference: found }
      : { result: 'unexplained', difference };
  }
  const undecidedOnly = possible.every(({ state }) => state === 'undecided');
  const subsets = subsetsOf(possible).map((subset) => ({
    subset,
    difference: residual - sumOf(subset.map(({ effect }) => effect)),
  }));
  const indicated = subsets.filter(({ subset }) =>
    possible.every((one) => subset.includes(one) === (one.indicated === 'executed')),
  );
  const fits = subsets.filter(({ difference }) => includes(drift, difference));
  // Bounds of a drift are no evidence about undecided operations.
  const fitting =
    undecidedOnly && !isExact(drift) ? fits.filter((one) => indicated.includes(one)) : fits;
  const [first] = fitting;
  if (!first) {
    const differences = (undecidedOnly ? indicated : subsets).map(({ difference }) => difference);
    return { result: 'unexplained', difference: hull(differences) };
  }
  const unique = fitting.length === 1;
  return {
    result: 'explained',
    unique,
    quiet: unique && undecidedOnly,
    shown: unique ? first.subset.map(({ id }) => id) : [],
    difference: hull(fitting.map(({ difference }) => difference)),
  };
}

function subsetsOf<T>(items: readonly T[]): T[][] {
  let subsets: T[][] = [[]];
  for (const item of items) subsets = [...subsets, ...subsets.map((subset) => [...subset, item])];
  return subsets;
}

function hull(values: readonly bigint[]): Range {
  return values.reduce<Range>(
    ({ min, max }, value) => ({ min: value < min ? value : min, max: value > max ? value : max }),
    { min: values[0] ?? 0n, max: values[0] ?? 0n },
  );
}

export function includes({ min, max }: Range, value: bigint): boolean {
  return min <= value && value <= max;
}

export function intersection(a: Range, b: Range): Range | undefined {
  const min = a.min > b.min ? a.min : b.min;
  const max = a.max < b.max ? a.max : b.max;
  return min <= max ? { min, max } : undefined;
}

export function isExact({ min, max }: Range): boolean {
  return min === max;
}

/** What an observation with the result `seen` shows of a wallet. */
export function walletRecordOf(observation: { record: Json }): {
  addr: string;
  balance: bigint;
  status: number;
} {
  const record = observation.record as Record<string, unknown>;
  return {
    addr: String(record.addr),
    balance: must(wholeOf(record.balance), 'balance of an observation'),
    status: Number(record.status),
  };
}
