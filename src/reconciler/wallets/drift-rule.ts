/**
 * A difference that no operation explains is suspected when it is first observed, and a drift when
 * a later observation agrees. A drift closes when the balance returns. Each further change is its
 * own drift. Pure.
 *
 * While operations are possible an observation only bounds the difference. The bounds of several
 * observations are intersected; until they meet, the drift is inexact, and a wallet has at most one
 * of these.
 */
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';
import { type Comparison, intersection, isExact, type Range, shifted } from './rule.ts';

export interface Suspicion extends Range {
  /** End of the observation that raised it; one that confirms it must start later. */
  at: Instant;
}
export interface OpenDrift extends Range {
  id: string;
}

export type DriftStep<D extends OpenDrift> =
  | { step: 'none' }
  | { step: 'suspect'; suspicion: Suspicion }
  | { step: 'open'; range: Range; suspectedAt: Instant }
  /** The amount of the inexact drift is known better, or has changed. */
  | { step: 'revise'; drift: D; range: Range }
  /** The balance returned: these drifts are over. */
  | { step: 'return'; drifts: D[] };

const DRIFTS_COMPARED_MAX = 12;

/** The sum of open drifts. */
export function totalOf(drifts: readonly OpenDrift[]): Range {
  return { min: sumOf(drifts.map(({ min }) => min)), max: sumOf(drifts.map(({ max }) => max)) };
}

/** The step that a comparison leads to. */
export function driftStep<D extends OpenDrift>(
  { result, difference }: Comparison,
  suspicion: Suspicion | undefined,
  open: readonly D[],
  observation: { startedAt: Instant; endedAt: Instant },
): DriftStep<D> {
  const exact = open.filter(isExact);
  const inexact = open.find((drift) => !isExact(drift));
  // What exact drifts leave over.
  const left = shifted(difference, -totalOf(exact).min);
  if (result === 'explained')
    return inexact && !isEqual(left, inexact) ? revised(inexact, left) : { step: 'none' };
  const agreed = suspicion && intersection(suspicion, left);
  if (!agreed) return { step: 'suspect', suspicion: { ...left, at: observation.endedAt } };
  // An overlapping observation of the same difference keeps the earlier suspicion.
  if (observation.startedAt <= suspicion.at)
    return { step: 'suspect', suspicion: { ...agreed, at: suspicion.at } };
  if (inexact) return revised(inexact, agreed);
  const returned = isExact(agreed) ? returnedDrifts(agreed.min, exact) : [];
  return returned.length > 0
    ? { step: 'return', drifts: returned }
    : { step: 'open', range: agreed, suspectedAt: suspicion.at };
}

function revised<D extends OpenDrift>(drift: D, range: Range): DriftStep<D> {
  return range.min === 0n && range.max === 0n
    ? { step: 'return', drifts: [drift] }
    : { step: 'revise', drift, range };
}

function isEqual(a: Range, b: Range): boolean {
  return a.min === b.min && a.max === b.max;
}

/** The open drifts that this difference takes back exactly: all of them, or else the fewest. */
function returnedDrifts<D extends OpenDrift>(difference: bigint, open: readonly D[]): D[] {
  if (open.length > 0 && difference === -totalOf(open).min) return [...open];
  const few = open.slice(-DRIFTS_COMPARED_MAX);
  const subsets = subsetsWithSum(
    few.map(({ min }) => [min]),
    [-difference],
    64,
  );
  if (subsets === 'too_many') return [];
  const smallest = subsets.sort((a, b) => a.length - b.length)[0] ?? [];
  return smallest.flatMap((i) => few[i] ?? []);
}
