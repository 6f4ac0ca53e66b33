/**
 * How unknown operations are resolved: a first finding makes a candidate, and a later one that
 * agrees resolves the operation. Weak or contradictory evidence makes it `undecided`, which only
 * people end.
 */
import type { Tx } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import { type Operation, operationFields } from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Deps } from './deps.ts';
import { type Candidate, dropCandidate, findCandidate, saveCandidate } from './store.ts';
import { probabilityExecuted } from './unknown/probability.ts';

/** What one or several observations say about one unknown operation. */
export interface Finding {
  outcome: 'executed' | 'not_executed';
  /** `two_sided`, `one_sided`, `token` or `scan`. */
  basis: string;
  /** False when the evidence is too weak even if it is repeated: people decide. */
  sufficient: boolean;
  evidence: { [key: string]: Json };
  /** The earliest start and the latest end of the observations it rests on. */
  startedAt: Instant;
  endedAt: Instant;
  txHash?: string | null;
  /** The number of the token that a sequential mint made. */
  tokenId?: bigint | null;
}

/**
 * From when on an observation can prove that a write was not executed: send deadline, quiescence
 * and read lag have passed. Time before the service became available again does not count.
 */
export function quiescentAt(
  operation: Operation,
  { settings, availableSince }: Pick<Deps, 'settings' | 'availableSince'>,
): Instant {
  const deadline = operation.sendDeadlineAt ?? operation.recordedAt;
  return Math.max(deadline, availableSince) + settings.quiescenceMs + settings.readLagMs;
}

export function isQuiescent(
  operation: Operation,
  startedAt: Instant,
  deps: Pick<Deps, 'settings' | 'availableSince'>,
): boolean {
  return startedAt >= quiescentAt(operation, deps);
}

/**
 * True when a write has waited for evidence as long as it may. Only time counts in which the
 * service was available and observations were processed.
 */
export function isOverdue(
  operation: Operation,
  deps: Pick<Deps, 'settings' | 'availableSince' | 'processingSince'>,
  now: Instant,
): boolean {
  const since = Math.max(quiescentAt(operation, deps), deps.processingSince);
  return now >= since + deps.settings.undecidedAfterMs;
}

/** The probability that a write was executed which an observation at `startedAt` does not show. */
export function executedProbability(
  { estimates, availableSince }: Pick<Deps, 'estimates' | 'availableSince'>,
  operation: Operation,
  startedAt: Instant,
): number {
  const { errorClass, errorCode, sentAt, recordedAt } = operation;
  const cause = errorCode ?? errorClass ?? 'unknown';
  return probabilityExecuted(
    estimates,
    cause,
    startedAt - Math.max(sentAt ?? recordedAt, availableSince),
  );
}

/** Applies one finding about an unknown operation. Answers the resulting events. */
export async function applyFinding(
  tx: Tx,
  deps: Deps,
  operation: Operation,
  finding: Finding,
  now: Instant,
): Promise<EventDraft[]> {
  const earlier = await findCandidate(tx, operation.id);
  if (!earlier) {
    await saveCandidate(tx, candidateOf(operation, finding));
    return [];
  }
  // Overlapping observations neither confirm nor contradict each other.
  if (finding.startedAt <= earlier.seenAt) return [];
  const evidence = {
    ...{ basis: finding.basis, first: earlier.evidence, second: finding.evidence },
    ...(finding.outcome === 'executed' ? shownAfter(deps, operation, earlier) : {}),
  };
  await dropCandidate(tx, operation.id);
  const contradicts =
    earlier.outcome !== finding.outcome || tokenIn(earlier.evidence) !== tokenIn(finding.evidence);
  if (contradicts || !finding.sufficient) {
    const indicated = contradicts ? 'contradictory' : finding.outcome;
    return markUndecided(tx, deps, operation, { ...evidence, indicated }, now);
  }
  const moved = await deps.operations.move(tx, [
    {
      id: operation.id,
      to: finding.outcome,
      at: now,
      cause: `evidence: ${finding.basis}`,
      evidence,
      txHash: finding.txHash ?? null,
      tokenId: finding.tokenId ?? null,
      ...(finding.outcome === 'executed'
        ? { effectiveAt: earlier.seenAt, effectiveBasis: 'observed' }
        : {}),
    },
  ]);
  return moved.map((resolved) => ({
    type: 'operation.resolved',
    subject: `operation:${resolved.id}`,
    occurredAt: now,
    data: { ...operationFields(resolved), evidence, supersedes: null },
  }));
}

/** An upper bound of the time until it showed; omitted when the service was down meanwhile. */
function shownAfter(
  { availableSince }: Deps,
  { sentAt }: Operation,
  { seenAt }: Candidate,
): { shown_after_ms?: number } {
  if (sentAt === null || availableSince > sentAt) return {};
  return { shown_after_ms: Math.max(0, seenAt - sentAt) };
}

function tokenIn(evidence: Json): Json | undefined {
  const named = evidence && typeof evidence === 'object' && !Array.isArray(evidence);
  return named ? evidence.token_id : undefined;
}

function candidateOf(operation: Operation, finding: Finding): Candidate {
  return {
    operationId: operation.id,
    outcome: finding.outcome,
    basis: finding.basis,
    evidence: finding.evidence,
    seenAt: finding.endedAt,
    observationStartedAt: finding.startedAt,
  };
}

export async function markUndecided(
  tx: Tx,
  { operations }: Deps,
  operation: Operation,
  evidence: { [key: string]: Json },
  now: Instant,
): Promise<EventDraft[]> {
  const cause = 'the evidence does not decide';
  const moved = await operations.move(tx, [
    { id: operation.id, to: 'undecided', at: now, cause, evidence },
  ]);
  return moved.map((undecided) => ({
    type: 'operation.undecided',
    subject: `operation:${undecided.id}`,
    occurredAt: now,
    data: { ...operationFields(undecided), evidence },
  }));
}
