/**
 * A difference that nothing explains: suspected when it is first observed, a drift when a later
 * observation agrees, closed when the balance returns. Each further change is its own drift. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';

export interface Suspicion {
  amount: bigint;
  /** End of the observation that raised it; one that confirms it must start later. */
  at: Instant;
}
export interface OpenDrift {
  id: string;
  amount: bigint;
}

export type DriftStep =
  | { step: 'none' }
  | { step: 'suspect'; suspicion: Suspicion }
  | { step: 'open'; amount: bigint; suspectedAt: Instant }
  /** The residual takes back these drifts. */
  | { step: 'return'; drifts: OpenDrift[]; suspectedAt: Instant };

const DRIFTS_COMPARED_MAX = 12;

/**
 * The step that a residual of a quiet observation leads to.
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
    // An overlapping observation of the same residual keeps the earlier suspicion.
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
