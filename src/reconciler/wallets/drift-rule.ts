/**
 * A difference that no operation explains is suspected when it is first observed, and a drift when
 * a later observation agrees. A drift closes when the balance returns. Each further change is its
 * own drift. Pure.
 *
 * While operations are possible an observation only bounds the difference, and so a drift. Later
 * observations narrow the bounds: each drift lies within the total less the other drifts. When only
 * the sum of several drifts becomes exact, one drift takes their place, because no
 * observation will ever tell them apart; they return when it is zero.
 *
 * What becomes known late, such as a report, ends the drift in whose window it took effect. With
 * the drifts that are left, the ledger as of every time stays what was observed then.
 */
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';
import { type Comparison, includes, intersection, isExact, type Range } from './rule.ts';

export interface Suspicion extends Range {
  /** End of the observation that raised it; one that confirms it must start later. */
  at: Instant;
}
export interface OpenDrift extends Range {
  id: string;
}

interface DriftStep<D extends OpenDrift> {
  suspicion?: Suspicion;
  /** Undefined: suspected as the first of those that merged. */
  opened?: { range: Range; suspectedAt: Instant | undefined };
  /** Drifts whose bounds are known better. */
  revised?: { drift: D; range: Range }[];
  /** Drifts that close because the balance returned. */
  returned?: readonly D[];
  /** Drifts that close because they are part of the one that is opened. */
  merged?: readonly D[];
}

const DRIFTS_COMPARED_MAX = 12;

/** The sum of open drifts. */
export function totalOf(drifts: readonly Range[]): Range {
  return { min: sumOf(drifts.map(({ min }) => min)), max: sumOf(drifts.map(({ max }) => max)) };
}

/** The step that a comparison leads to. */
export function driftStep<D extends OpenDrift>(
  { result, difference }: Comparison,
  suspicion: Suspicion | undefined,
  open: readonly D[],
  observation: { startedAt: Instant; endedAt: Instant },
): DriftStep<D> {
  if (result === 'explained') return stepWhenExplained(difference, open);
  const left = without(difference, totalOf(open));
  const agreed = suspicion && intersection(suspicion, left);
  if (!agreed) return { suspicion: { ...left, at: observation.endedAt } };
  // An overlapping observation of the same difference keeps the earlier suspicion.
  if (observation.startedAt <= suspicion.at) return { suspicion: { ...agreed, at: suspicion.at } };
  const ended = endedBy(difference, open);
  const returned = ended.length > 0 ? ended : takenBack(agreed, open);
  if (returned.length > 0) {
    const rest = open.filter((drift) => !returned.includes(drift));
    const { returned: more = [], ...step } = narrowedStep(difference, rest);
    return { ...step, returned: [...returned, ...more] };
  }
  return narrowedStep(difference, open, { range: agreed, suspectedAt: suspicion.at });
}

/** Drifts return when the difference ends them; else their bounds narrow. */
function stepWhenExplained<D extends OpenDrift>(
  difference: Range,
  open: readonly D[],
): DriftStep<D> {
  const ended = endedBy(difference, open);
  return ended.length > 0 ? { revised: [], returned: ended } : narrowedStep(difference, open);
}

/** All drifts when the difference is zero; those with bounds when the exact ones sum to it. */
function endedBy<D extends OpenDrift>(difference: Range, open: readonly D[]): readonly D[] {
  if (!isExact(difference)) return [];
  if (difference.min === 0n) return open;
  const isOver = difference.min === totalOf(open.filter(isExact)).min;
  return isOver ? open.filter((drift) => !isExact(drift)) : [];
}

/** The amounts by which one of the first range may exceed one of the second. */
function without(range: Range, other: Range): Range {
  return { min: range.min - other.max, max: range.max - other.min };
}

/** What the difference says of the open drifts and of a further one. */
function narrowedStep<D extends OpenDrift>(
  difference: Range,
  open: readonly D[],
  further?: { range: Range; suspectedAt: Instant },
): DriftStep<D> {
  const ranges = narrowed(difference, further ? [...open, further.range] : open);
  const range = ranges.at(-1) ?? difference;
  if (!isExact(difference) || ranges.filter((one) => !isExact(one)).length < 2)
    return { ...changed(open, ranges), ...(further && { opened: { ...further, range } }) };
  const of = (drift: D) => ranges[open.indexOf(drift)] ?? drift;
  const kept = open.filter((drift) => isExact(of(drift)));
  const merged = open.filter((drift) => !kept.includes(drift));
  const { revised = [], returned = [] } = changed(kept, kept.map(of));
  const sum = difference.min - totalOf(kept.map(of)).min;
  if (sum === 0n) return { revised, returned: [...returned, ...merged] };
  const opened = { range: { min: sum, max: sum }, suspectedAt: further?.suspectedAt };
  return { revised, returned, opened, merged };
}

/** The ranges, narrowed by their known sum. A second time, because each depends on the others. */
function narrowed(sum: Range, given: readonly Range[]): Range[] {
  const ranges = given.map(({ min, max }) => ({ min, max }));
  for (const i of [...ranges.keys(), ...ranges.keys()]) {
    const range = ranges[i] ?? sum;
    const others = totalOf(ranges.filter((_, j) => j !== i));
    ranges[i] = intersection(range, without(sum, others)) ?? range;
  }
  return ranges;
}

function isZero({ min, max }: Range): boolean {
  return min === 0n && max === 0n;
}

/** The drifts whose bounds have changed, and those that turned out to be zero. */
function changed<D extends OpenDrift>(open: readonly D[], ranges: readonly Range[]): DriftStep<D> {
  const changes = open.flatMap((drift, i) => {
    const range = ranges[i];
    return range && (range.min !== drift.min || range.max !== drift.max) ? [{ drift, range }] : [];
  });
  return {
    revised: changes.filter(({ range }) => !isZero(range)),
    returned: changes.flatMap(({ drift, range }) => (isZero(range) ? [drift] : [])),
  };
}

/**
 * The exact drifts that an exact change takes back: all of them, or else the fewest, the oldest of
 * equal ones.
 */
function takenBack<D extends OpenDrift>(change: Range, open: readonly D[]): D[] {
  if (!isExact(change)) return [];
  const exact = open.filter(isExact);
  if (exact.length > 0 && change.min === -totalOf(exact).min) return exact;
  const few = exact.slice(-DRIFTS_COMPARED_MAX);
  const subsets = subsetsWithSum(
    few.map(({ min }) => [min]),
    [-change.min],
    64,
  );
  if (subsets === 'too_many') return [];
  const isOlder = (a: number[], b: number[]) =>
    a.reduce((order, index, i) => order || index - (b[i] ?? 0), 0);
  const smallest = subsets.sort((a, b) => a.length - b.length || isOlder(a, b))[0] ?? [];
  return smallest.flatMap((i) => few[i] ?? []);
}

/** A change of what a wallet is expected to hold that became known late. */
export interface LateChange {
  operationId: string;
  amount: bigint;
  /** It took effect between these; equal when the time is known. */
  from: Instant;
  to: Instant;
  /** Whether it may be a part of a drift although its time is not exact. */
  mayBePart?: boolean;
}

interface Windowed extends OpenDrift {
  /** The last observation before the change of the balance, and the end of the first after it. */
  windowFrom: Instant | null;
  windowTo: Instant;
}

export interface LateExplanation<D extends Windowed> {
  drift: D;
  by: LateChange[];
  /** What these changes leave of the drift; undefined if that may be nothing. */
  rest: Range | undefined;
}

/**
 * The drifts that late changes explain, and the changes that fall into no drift. A change belongs
 * to the oldest drift of exactly its amount in whose window it may have taken effect. One whose
 * time is known is otherwise a part of the drift in whose window that is.
 * @param drifts the oldest first
 */
export function explainedBy<D extends Windowed>(
  drifts: readonly D[],
  late: readonly LateChange[],
  readLagMs: number,
): { explained: LateExplanation<D>[]; others: LateChange[] } {
  const found = drifts.map((drift): LateExplanation<D> & { left: Range } => {
    return { drift, by: [], left: drift, rest: undefined };
  });
  let others = late.toSorted((a, b) => a.from - b.from);
  const assign = (fits: (one: (typeof found)[number], change: LateChange) => boolean) => {
    others = others.filter((change) => {
      const one = found.find(
        (some) => isWithin(change, some.drift, readLagMs) && fits(some, change),
      );
      if (!one) return true;
      one.by.push(change);
      one.left = without(one.left, { min: change.amount, max: change.amount });
      return false;
    });
  };
  assign(({ by, left }, { amount }) => by.length === 0 && isExact(left) && left.min === amount);
  assign(
    ({ by, left }, { from, to, mayBePart = from === to }) =>
      mayBePart && (by.length === 0 || !includes(left, 0n)),
  );
  const explained = found
    .filter(({ by }) => by.length > 0)
    .map(({ drift, by, left }) => ({ drift, by, rest: includes(left, 0n) ? undefined : left }));
  return { explained, others };
}

/** Whether a change may have taken effect in the window; reads may lag behind it. */
function isWithin(
  { from, to }: LateChange,
  { windowFrom, windowTo }: Windowed,
  readLagMs: number,
): boolean {
  return from <= windowTo && (windowFrom === null || to >= windowFrom - readLagMs);
}

/** A series of equal polls: when the first and the last one began and ended. */
interface PollSeries {
  unchangedSince: Instant;
  firstEndedAt: Instant;
  startedAt: Instant;
  endedAt: Instant;
}

/** What must have hidden late changes from the polls, and between which polls that was. */
export interface Hidden {
  /** The first of them, and when it took effect. */
  operationId: string;
  at: Instant;
  amount: bigint;
  windowFrom: Instant;
  windowTo: Instant;
}

/** What is known of a wallet since the late changes took effect. */
interface Since {
  /** The newest first. */
  polls: readonly PollSeries[];
  /** Of drifts, the longest first. */
  windows: readonly Pick<Hidden, 'windowFrom' | 'windowTo'>[];
  readLagMs: number;
  /** A poll that did not show the changes. */
  quietAt: Instant;
}

/**
 * What hid late changes, whose times are known, from the polls since. It happened between the same
 * two polls, before or after the change that it hid. Within a series of equal polls only the first
 * and the last are known, so there it counts as later. The polls in the window of a drift only
 * bounded the balance, so what hid a change in it happened anywhere in the window. Changes of one
 * window are hidden together: no poll tells them apart.
 */
export function hiddenBy(
  late: readonly LateChange[],
  { polls, windows, readLagMs, quietAt }: Since,
): Hidden[] {
  const betweenPolls = (at: Instant) => {
    const shownFrom = at + readLagMs;
    const next = polls.findLastIndex(({ startedAt }) => startedAt >= shownFrom);
    const first = polls[next];
    if (!first) return { windowFrom: at, windowTo: quietAt };
    if (first.unchangedSince < shownFrom) return { windowFrom: at, windowTo: first.endedAt };
    const windowFrom = Math.min(at, polls[next + 1]?.startedAt ?? at);
    return { windowFrom, windowTo: first.firstEndedAt };
  };
  const windowOf = (at: Instant) => {
    const polled = betweenPolls(at);
    const isWider = ({ windowFrom, windowTo }: (typeof windows)[number]) =>
      windowFrom <= at && at <= windowTo && windowTo > polled.windowTo;
    return windows.find(isWider) ?? polled;
  };
  const hidden: Hidden[] = [];
  for (const { operationId, amount, to: at } of late.toSorted((a, b) => a.to - b.to)) {
    const { windowFrom, windowTo } = windowOf(at);
    const joint = hidden.find((one) => one.windowFrom === windowFrom && one.windowTo === windowTo);
    if (joint) joint.amount -= amount;
    else hidden.push({ operationId, at, amount: -amount, windowFrom, windowTo });
  }
  return hidden.filter(({ amount }) => amount !== 0n);
}
