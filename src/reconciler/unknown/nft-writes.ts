/** Lost answers of NFT writes, by what a look at their token says. */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listObservations, type StoredObservation } from '../../observer/observer.ts';
import type { Operation } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { beliefIn, isQuiescent, type Said, takeEvidence } from '../resolution.ts';
import type { Token } from '../store.ts';
import { hashChange, preImageOf, type SeenToken, tokenEvidence } from '../tokens/evidence.ts';
import { isUnlikely } from './probability.ts';

/**
 * Judges every unknown operation of one token by one look at it.
 * @param held the token as it was held before this look
 */
export async function judgeLostTokenWrites(
  tx: Tx,
  context: Context,
  given: {
    operations: readonly Operation[];
    held: Token | undefined;
    seen: SeenToken | 'absent';
    observation: StoredObservation;
    now: Instant;
  },
): Promise<EventDraft[]> {
  const { operations, held, seen, observation, now } = given;
  const unknown = operations.filter((operation) => operation.state === 'unknown');
  const sent = operations.filter(({ state }) => state !== 'queued' && state !== 'recorded');
  const open = sent.filter(({ outcome }) => outcome === 'open');
  const hash = seen === 'absent' ? null : seen.lastTxHash;
  const events: EventDraft[] = [];
  for (const lost of unknown) {
    const operation = await withImage(tx, lost, observation);
    // A look that began before the write was sent says nothing of it.
    if (observation.startedAt <= (operation.sentAt ?? operation.recordedAt)) continue;
    const others = sent.filter((other) => other !== lost);
    // Two lost writes of one kind on one token cannot be told apart by the token alone, nor can a
    // lost burn from one that was answered.
    const rivals = others.filter(({ kind }) => kind === operation.kind);
    if (rivals.some(({ outcome }) => outcome === 'open')) continue;
    if (operation.kind === 'burn' && rivals.some((o) => o.outcome === 'executed')) continue;
    const said = tokenEvidence(operation, seen, {
      change: hashChange(operation, hash, others),
      existed: existedBefore(operation, others, held),
      others,
      alone: open.length === 1,
    });
    if (!said) continue;
    const belief = beliefIn(context, operation, observation.startedAt);
    if (said.outcome === 'not_executed') {
      if (!isQuiescent(operation, observation.startedAt, context) || !isUnlikely(belief)) continue;
      if (seen === 'absent' && (await wasThere(tx, operation, others, observation))) continue;
    }
    const { outcome, cause } = said;
    // Of several lost writes on one token, which one the hash belongs to is not known.
    const owned = others.some((other) => other.txHash !== null && other.txHash === hash);
    const txHash = outcome === 'executed' && open.length === 1 && !owned ? hash : null;
    const [startedAt, endedAt] = [observation.startedAt, observation.endedAt];
    const evidence: Said['evidence'] = { observation: observation.id, cause };
    if (outcome === 'not_executed') evidence.belief_executed = belief;
    const statement = { outcome, basis: 'token', enough: true, evidence, startedAt, endedAt };
    events.push(...(await takeEvidence(tx, context, operation, { ...statement, txHash }, now)));
  }
  return events;
}

/** Looks that are searched for one that saw the token. */
const LOOKS_SEARCHED_MAX = 200;

/** A write that left before its first look came back has the newest look from before as its own. */
async function withImage(
  tx: Tx,
  operation: Operation,
  observation: StoredObservation,
): Promise<Operation> {
  if (preImageOf(operation)) return operation;
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const observations = await listObservations(tx, observation.target, LOOKS_SEARCHED_MAX);
  const before = observations.find(({ result, endedAt }) => result === 'seen' && endedAt <= sentAt);
  return before
    ? { ...operation, preImage: { token: before.record, at: before.startedAt } }
    : operation;
}

/** Whether the token was seen since a lost mint was sent, or another write on it succeeded. */
async function wasThere(
  tx: Tx,
  operation: Operation,
  others: readonly Operation[],
  observation: StoredObservation,
): Promise<boolean> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  if (others.some(({ outcome, recordedAt }) => outcome === 'executed' && recordedAt > sentAt))
    return true;
  const observations = await listObservations(tx, observation.target, LOOKS_SEARCHED_MAX);
  return observations.some(({ result, startedAt }) => result === 'seen' && startedAt > sentAt);
}

/** Whether the token was there when the write was sent: seen, or made by another write of ours. */
function existedBefore(
  operation: Operation,
  others: readonly Operation[],
  held: Token | undefined,
): boolean {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  return (
    preImageOf(operation) !== undefined ||
    (held?.presence === 'present' && held.observedAt < sentAt) ||
    others.some(
      ({ kind, outcome, recordedAt }) =>
        (kind === 'mint' || kind === 'mint_sequential') &&
        outcome === 'executed' &&
        recordedAt < sentAt,
    )
  );
}
