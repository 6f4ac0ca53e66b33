/**
 * A difference that no operation explains is suspected when it is first observed, and a drift when
 * a later observation agrees. A drift closes when the balance returns. Each further change is its
 * own drift. Pure.
 *
 * While operations are possible an observation only bounds the difference, and so a drift. Later
 * observations narrow the bounds: each drift lies within the total less the other drifts. When only
 * the sum of several drifts becomes exact, one drift takes their place, because no
 * observation will ever tell them apart; they return when it is zero.
 */
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../operations/operations.ts';
import { type Comparison, intersection, isExact, type Range } from './rule.ts';

export interface Suspicion extends Range {
  /** End of the observation that raised it; one that confirms it must start later. */
  at: Instant;
}
export interface OpenDrift extends Range {
  id: string;
}

export interface DriftStep<D extends OpenDrift> {
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

/** The exact drifts that an exact change takes back: all of them, or else the fewest. */
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
  const smallest = subsets.sort((a, b) => a.length - b.length)[0] ?? [];
  return smallest.flatMap((i) => few[i] ?? []);
}
