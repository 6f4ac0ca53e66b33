/** Resolves unknown NFT writes by observations of their token. */
import type { Tx } from '../../db/connect.ts';
import { sameTxHash } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listObservations, type UnprocessedObservation } from '../../observer/observer.ts';
import type { Operation } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { applyFinding, type Finding, isQuiescent } from '../resolution.ts';
import { hashChange, type ObservedToken, preImageOf, tokenEvidence } from '../tokens/evidence.ts';
import { COMPLETE, FAILED, isMint, sentAtOf } from '../tokens/rule.ts';
import type { Token } from '../tokens/token.ts';

/**
 * Evaluates every unknown operation of one token with one observation.
 * @param held the token as accepted before this observation
 */
export async function evaluateNftWrites(
  tx: Tx,
  deps: Deps,
  input: {
    operations: readonly Operation[];
    held: Token | undefined;
    seen: ObservedToken | 'absent';
    observation: UnprocessedObservation;
    now: Instant;
  },
): Promise<EventDraft[]> {
  const { operations, held, seen, observation, now } = input;
  const unknown = operations.filter((operation) => operation.state === 'unknown');
  const sent = operations.filter(({ state }) => state !== 'queued');
  const open = sent.filter(({ outcome }) => outcome === 'open');
  const hash = seen === 'absent' ? null : seen.lastTxHash;
  const events: EventDraft[] = [];
  for (const stored of unknown) {
    const operation = await withImage(tx, stored, observation);
    if (observation.startedAt <= sentAtOf(operation)) continue;
    const others = sent.filter((other) => other !== stored);
    const change = hashChange(operation, hash, others);
    if (change !== 'none' && hasRival(operation, others)) continue;
    const found = tokenEvidence(operation, seen, {
      change,
      existed: existedBefore(operation, others, held),
      others,
      alone: open.length === 1,
    });
    if (!found) continue;
    if (found.outcome === 'not_executed') {
      if (!isQuiescent(operation, observation.startedAt, deps)) continue;
      if (seen === 'absent' && (await wasThere(tx, operation, others, observation))) continue;
    }
    const { outcome, cause } = found;
    // With several open writes on the token the owner of the hash is not known.
    const owned = others.some((other) => sameTxHash(other.txHash, hash));
    const txHash = outcome === 'executed' && open.length === 1 && !owned ? hash : null;
    const [startedAt, endedAt] = [observation.startedAt, observation.endedAt];
    const evidence = { observation: observation.id, cause };
    const finding: Finding = {
      outcome,
      txHash,
      basis: 'token',
      sufficient: true,
      evidence,
      startedAt,
      endedAt,
      ending: outcome === 'executed' ? endingBy(seen, cause, owned) : undefined,
    };
    events.push(...(await applyFinding(tx, deps, operation, finding, now)));
  }
  return events;
}

/**
 * How a token that shows an executed write ends it; undefined while the chain processes the token.
 * @param owned whether the last hash, and with it the status, is that of another known operation
 */
function endingBy(
  seen: ObservedToken | 'absent',
  cause: string,
  owned: boolean,
): Finding['ending'] {
  if (seen === 'absent' || seen.status === COMPLETE) return { to: 'settled', cause };
  if (seen.status !== FAILED) return undefined;
  return { to: owned ? 'settled' : 'failed', cause };
}

/** Once changed, a token does not tell two open writes of one kind apart, nor two burns. */
function hasRival({ kind }: Operation, others: readonly Operation[]): boolean {
  const rivals = others.filter((other) => other.kind === kind);
  const outcomes = kind === 'burn' ? ['open', 'executed'] : ['open'];
  return rivals.some(({ outcome }) => outcomes.includes(outcome));
}

const OBSERVATIONS_SEARCHED_MAX = 200;

/** Completes a missing pre-image with the newest observation from before the send. */
async function withImage(
  tx: Tx,
  operation: Operation,
  observation: UnprocessedObservation,
): Promise<Operation> {
  if (preImageOf(operation)) return operation;
  const sentAt = sentAtOf(operation);
  const observations = await listObservations(tx, observation.target, OBSERVATIONS_SEARCHED_MAX);
  const before = observations.find(
    ({ result, firstEndedAt }) => result === 'seen' && firstEndedAt <= sentAt,
  );
  return before
    ? { ...operation, preImage: { token: before.record, at: before.unchangedSince } }
    : operation;
}

/** Whether the token was observed, or another operation on it executed, after the send. */
async function wasThere(
  tx: Tx,
  operation: Operation,
  others: readonly Operation[],
  observation: UnprocessedObservation,
): Promise<boolean> {
  const sentAt = sentAtOf(operation);
  if (others.some(({ outcome, recordedAt }) => outcome === 'executed' && recordedAt > sentAt))
    return true;
  const observations = await listObservations(tx, observation.target, OBSERVATIONS_SEARCHED_MAX);
  return observations.some(({ result, startedAt }) => result === 'seen' && startedAt > sentAt);
}

/** Whether the token existed at the send: observed, or minted by another operation. */
function existedBefore(
  operation: Operation,
  others: readonly Operation[],
  held: Token | undefined,
): boolean {
  const sentAt = sentAtOf(operation);
  return (
    preImageOf(operation) !== undefined ||
    (held?.presence === 'present' && held.observedAt < sentAt) ||
    others.some(
      (other) => isMint(other) && other.outcome === 'executed' && other.recordedAt < sentAt,
    )
  );
}
