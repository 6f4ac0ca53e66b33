/**
 * How unknown operations are resolved: a first finding makes a candidate, and a later one that
 * agrees resolves the operation. Weak or contradictory evidence makes it `undecided`, which only
 * people end.
 */
import type { Queryable, Tx } from '../db/connect.ts';
import { columnsOf, newValues, rowOf } from '../db/rows.ts';
import { DAY_MS, type Instant } from '../kernel/clock.ts';
import { type Json, membersOf } from '../kernel/json.ts';
import type { Wait } from '../observer/observer.ts';
import {
  aboutOperation,
  endedEvent,
  NFT_KINDS,
  type Operation,
  operationFields,
} from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Deps } from './deps.ts';
import { candidates } from './tables.ts';
import type { Ending } from './tokens/ending.ts';

/** What one or several observations say about one unknown operation. */
export interface Finding {
  outcome: 'executed' | 'not_executed';
  /** `two_sided`, `one_sided`, `token` or `scan`. */
  basis: string;
  /** False when the evidence is too weak even if it is repeated: people decide. */
  sufficient: boolean;
  evidence: { [key: string]: Json };
  /** What people decide by, of each wallet of the operation. */
  wallets?: () => Json[];
  /** The earliest start and the latest end of the observations it rests on. */
  startedAt: Instant;
  endedAt: Instant;
  txHash?: string | null;
  /** The number of the token that a sequential mint made. */
  tokenId?: bigint | null;
  /** How the newest observation also ends the write, if it was executed. */
  ending?: Ending | undefined;
}

/**
 * From when on an observation can prove that a write was not executed: send deadline, quiescence
 * and read lag have passed. Time before the service became available again does not count.
 */
export function quiescenceEnd(
  deadlineAt: Instant,
  { settings, availableSince }: Pick<Deps, 'settings' | 'availableSince'>,
): Instant {
  return Math.max(deadlineAt, availableSince) + settings.quiescenceMs + settings.readLagMs;
}

/** The same for an operation. */
export function quiescentAt(
  { sendDeadlineAt, recordedAt }: Operation,
  deps: Pick<Deps, 'settings' | 'availableSince'>,
): Instant {
  return quiescenceEnd(sendDeadlineAt ?? recordedAt, deps);
}

export function isQuiescent(
  operation: Operation,
  startedAt: Instant,
  deps: Pick<Deps, 'settings' | 'availableSince'>,
): boolean {
  return startedAt >= quiescentAt(operation, deps);
}

/**
 * When a target of an open operation is polled next: where it most likely shows, and not later than
 * the end of quiescence, from which on two polls may show that nothing happened.
 */
export function nextPollOf(
  operation: Operation,
  deps: Pick<Deps, 'settings' | 'availableSince' | 'polls'>,
  poll: { polledAt: Instant; now: Instant },
): Instant {
  const { outcome } = operation;
  const expectedAt = deps.polls.nextAt(waitFor(operation), poll);
  if (outcome !== 'open') return expectedAt;
  const quiescent = quiescentAt(operation, deps);
  if (poll.now < quiescent) return Math.min(expectedAt, quiescent + 1);
  return deps.polls.nextAt({ kind: 'confirmation', since: quiescent }, poll);
}

/** What polls of a target of an operation wait for. */
export function waitFor(operation: Operation): Wait {
  const { kind, contractId, answeredAt, sentAt, recordedAt } = operation;
  const since = answeredAt ?? sentAt ?? recordedAt;
  return NFT_KINDS.includes(kind) ? { kind, contractId, since } : { kind: 'balance', since };
}

/** How long an operation waits for an observation after quiescence, before people decide. */
const UNOBSERVED_MAX_MS = DAY_MS;

/**
 * True when an operation becomes undecided: the time set is over, and each of its targets was
 * observed after quiescence; without such observations after a day.
 * @param observedAt start of the newest observation of the target that was observed least recently
 */
export function isOverdue(
  operation: Operation,
  deps: Pick<Deps, 'settings' | 'availableSince'>,
  observedAt: Instant | undefined,
  now: Instant,
): boolean {
  const since = quiescentAt(operation, deps);
  const isObserved = observedAt !== undefined && observedAt >= since;
  return now >= since + (isObserved ? deps.settings.undecidedAfterMs : UNOBSERVED_MAX_MS);
}

/** Applies one finding about an unknown operation. Returns the resulting events. */
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
  const { basis } = finding;
  const evidence = { basis, first: earlier.evidence, second: finding.evidence };
  await dropCandidate(tx, operation.id);
  const contradicts =
    earlier.outcome !== finding.outcome ||
    membersOf(earlier.evidence).token_id !== membersOf(finding.evidence).token_id;
  if (contradicts || !finding.sufficient) {
    const indicated = contradicts ? 'contradictory' : finding.outcome;
    const wallets = finding.wallets?.() ?? [];
    return markUndecided(tx, deps, operation, { ...evidence, indicated, wallets }, now);
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
  const events = moved.map(
    (resolved): EventDraft => ({
      ...aboutOperation(resolved),
      type: 'operation.resolved',
      occurredAt: now,
      data: { ...operationFields(resolved), evidence, supersedes: null },
    }),
  );
  const { ending } = finding;
  if (!ending) {
    // A token is polled seldom once the writes that were known to be on it have settled.
    for (const { state, contractId, tokenId } of moved)
      if (state === 'executed' && contractId !== null && tokenId !== null)
        deps.pollBy(`token:${contractId}:${tokenId}`, now);
    return events;
  }
  // At once: a later write may replace what the token shows before it is polled again.
  const ended = await deps.operations.move(
    tx,
    moved.map(({ id }) => ({ id, at: now, settledAt: now, ...ending })),
  );
  return [...events, ...ended.map((one) => endedEvent(one, now))];
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
    ...aboutOperation(undecided),
    type: 'operation.undecided',
    occurredAt: now,
    data: { ...operationFields(undecided), evidence },
  }));
}

/** A finding about an unknown operation that a later observation has to confirm. */
type Candidate = typeof candidates.$inferSelect;

export async function findCandidate(
  db: Queryable,
  operationId: string,
): Promise<Candidate | undefined> {
  const rows = await db.sql<Candidate[]>`
    select ${columnsOf(db.sql, candidates)} from tallyhook.candidates
    where operation_id = ${operationId}`;
  return rows[0];
}

async function saveCandidate({ sql }: Tx, candidate: Candidate): Promise<void> {
  await sql`
    insert into tallyhook.candidates ${rowOf(sql, candidates, candidate)}
    on conflict (operation_id) do update set ${newValues(sql, candidates, 'operation_id')}`;
}

/** Deletes candidates of operations that an answer or a person has resolved meanwhile. */
export async function dropResolvedCandidates(db: Queryable): Promise<void> {
  await db.sql`
    delete from tallyhook.candidates c where (
      select o.state = 'unknown' from tallyhook.operations o
      where o.id = c.operation_id) is not true`;
}

async function dropCandidate(tx: Tx, operationId: string): Promise<void> {
  await tx.sql`delete from tallyhook.candidates where operation_id = ${operationId}`;
}
