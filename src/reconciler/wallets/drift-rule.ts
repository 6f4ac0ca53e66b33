/**
 * The life of a difference that nothing explains: suspected at first sight, confirmed when a
 * second, later look agrees, closed when the balance returns. Each further change is its own drift;
 * none is ever fired twice. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../unknown/subsets.ts';

export interface Suspicion {
  amount: bigint;
  /** When the look that raised it ended: a look that agrees must start later. */
  at: Instant;
}
export interface OpenDrift {
  id: string;
  amount: bigint;
}

export type DriftStep =
  | { step: 'none' }
  /** Remember the residual and look again soon. */
  | { step: 'suspect'; suspicion: Suspicion }
  /** A second look agrees: a new drift of this amount. */
  | { step: 'open'; amount: bigint; suspectedAt: Instant }
  /** A second look agrees that these drifts are gone. */
  | { step: 'return'; drifts: OpenDrift[]; suspectedAt: Instant };

const DRIFTS_COMPARED_MAX = 12;

/**
 * What a clean residual leads to.
 * @param residual observed minus expected, open drifts included in what is expected
 */
export function driftStep(
  residual: bigint,
  suspicion: Suspicion | undefined,
  open: readonly OpenDrift[],
  observation: { startedAt: Instant; endedAt: Instant },
): DriftStep {
  if (residual === 0n) return { step: 'none' };
  const agrees = suspicion?.amount === residual && observation.startedAt > suspicion.at;
  if (!agrees) {
    // The same residual seen in an overlapping look keeps the earlier suspicion; it is not yet a
    // second.
    const kept =
      suspicion?.amount === residual ? suspicion : { amount: residual, at: observation.endedAt };
    return { step: 'suspect', suspicion: kept };
  }
  const returned = returnedDrifts(residual, open);
  if (returned.length > 0) return { step: 'return', drifts: returned, suspectedAt: suspicion.at };
  return { step: 'open', amount: residual, suspectedAt: suspicion.at };
}

/** The open drifts that this residual takes back exactly: all of them, or else the fewest. */
function returnedDrifts(residual: bigint, open: readonly OpenDrift[]): OpenDrift[] {
  const total = open.reduce((sum, drift) => sum + drift.amount, 0n);
  if (open.length > 0 && residual === -total) return [...open];
  const few = open.slice(-DRIFTS_COMPARED_MAX);
  const subsets = subsetsWithSum(
    few.map((drift) => [drift.amount]),
    [-residual],
    64,
  );
  if (subsets === 'too_many') return [];
  const smallest = subsets.sort((a, b) => a.length - b.length)[0] ?? [];
  return smallest.flatMap((i) => few[i] ?? []);
}
