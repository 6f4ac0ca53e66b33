/**
 * How a lost answer comes to its end: a first look makes a candidate, a second, later look that
 * agrees settles it; weak or contradictory evidence makes it `undecided`, which only people end.
 * Never the other way round, and never by the passing of time alone.
 */
import type { Tx } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import { type Operation, operationFields } from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Context } from './deps.ts';
import { type Candidate, dropCandidate, findCandidate, saveCandidate } from './store.ts';
import { beliefExecuted } from './unknown/probability.ts';

/** What one look, or several together, say about one lost answer. */
export interface Said {
  outcome: 'executed' | 'not_executed';
  /** `two_sided`, `one_sided`, `token` or `sweep`. */
  basis: string;
  /** False when the evidence is not enough even if it is repeated: people decide. */
  enough: boolean;
  evidence: { [key: string]: Json };
  /** The earliest start and the latest end of the looks it rests on. */
  startedAt: Instant;
  endedAt: Instant;
  txHash?: string | null;
  /** The number of the token that a mint made, as far as it was not known. */
  tokenId?: bigint | null;
}

/**
 * From when on a look proves that a write was not executed: the service may apply it for the
 * quiescence after its deadline, and reads may hide it for the read lag after that. While the
 * service is down the clock stands still, and starts again when it is back.
 */
export function quietAfter(
  operation: Operation,
  { settings, availableSince }: Pick<Context, 'settings' | 'availableSince'>,
): Instant {
  const deadline = operation.sendDeadlineAt ?? operation.recordedAt;
  return Math.max(deadline, availableSince) + settings.quiescenceMs + settings.readLagMs;
}

/** True when looks from `startedAt` on may prove that a write was not executed. */
export function isQuiescent(
  operation: Operation,
  startedAt: Instant,
  context: Pick<Context, 'settings' | 'availableSince'>,
): boolean {
  return startedAt >= quietAfter(operation, context);
}

/**
 * True when a write has waited for evidence as long as it may. Only time counts in which evidence
 * could come: the service was there, and somebody judged.
 */
export function isOverdue(
  operation: Operation,
  context: Pick<Context, 'settings' | 'availableSince' | 'processingSince'>,
  now: Instant,
): boolean {
  const since = Math.max(quietAfter(operation, context), context.processingSince);
  return now >= since + context.settings.undecidedAfterMs;
}

/** How likely the write was executed although a look that began at `startedAt` does not show it. */
export function beliefIn(
  { odds, availableSince }: Pick<Context, 'odds' | 'availableSince'>,
  operation: Operation,
  startedAt: Instant,
): number {
  const { errorClass, errorCode, sentAt, recordedAt } = operation;
  const cause = errorCode ?? errorClass ?? 'unknown';
  return beliefExecuted(odds, cause, startedAt - Math.max(sentAt ?? recordedAt, availableSince));
}

/** Takes one statement about an unknown operation. Answers the events of what it led to. */
export async function takeEvidence(
  tx: Tx,
  context: Context,
  operation: Operation,
  said: Said,
  now: Instant,
): Promise<EventDraft[]> {
  const earlier = await findCandidate(tx, operation.id);
  if (!earlier) {
    await saveCandidate(tx, candidateOf(operation, said));
    return [];
  }
  // Overlapping looks are one look: they neither agree nor contradict.
  if (said.startedAt <= earlier.seenAt) return [];
  const evidence = {
    ...{ basis: said.basis, first: earlier.evidence, second: said.evidence },
    ...(said.outcome === 'executed' ? shownAfter(context, operation, earlier) : {}),
  };
  await dropCandidate(tx, operation.id);
  // What was shown once and is not any more, or the reverse: somebody else had a hand in it.
  const contradicts =
    earlier.outcome !== said.outcome || tokenIn(earlier.evidence) !== tokenIn(said.evidence);
  if (contradicts || !said.enough) {
    const belief = contradicts ? 'contradictory' : said.outcome;
    return giveToPeople(tx, context, operation, { ...evidence, belief }, now);
  }
  const moved = await context.operations.move(tx, [
    {
      id: operation.id,
      to: said.outcome,
      at: now,
      cause: `evidence: ${said.basis}`,
      evidence,
      txHash: said.txHash ?? null,
      tokenId: said.tokenId ?? null,
      ...(said.outcome === 'executed'
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

/** How long it took to show at most; not told where the service was down meanwhile. */
function shownAfter(
  { availableSince }: Context,
  { sentAt }: Operation,
  { seenAt }: Candidate,
): { shown_after_ms?: number } {
  if (sentAt === null || availableSince > sentAt) return {};
  return { shown_after_ms: Math.max(0, seenAt - sentAt) };
}

/** The token that a statement names, if it names one. */
function tokenIn(evidence: Json): Json | undefined {
  const named = evidence && typeof evidence === 'object' && !Array.isArray(evidence);
  return named ? evidence.token_id : undefined;
}

function candidateOf(operation: Operation, said: Said): Candidate {
  return {
    operationId: operation.id,
    outcome: said.outcome,
    basis: said.basis,
    evidence: said.evidence,
    seenAt: said.endedAt,
    observationStartedAt: said.startedAt,
  };
}

/** Marks an unknown operation as `undecided`, with what is known. */
export async function giveToPeople(
  tx: Tx,
  { operations }: Context,
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
