/**
 * One look at a token, judged: in one transaction the accepted state, the operations that it ends,
 * what it says about lost answers, and the events. A token is gone only when two looks in a row say
 * so.
 */
import type { Tx } from '../../db/connect.ts';
import { decimalText, wholeOf } from '../../kernel/amounts.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import {
  expedite,
  listObservations,
  pendingIntervalMs,
  type StoredObservation,
} from '../../observer/observer.ts';
import {
  listForToken,
  type Operation,
  operationFields,
  type State,
} from '../../operations/operations.ts';
import type { EventDraft, EventType } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { findToken, saveToken, type Token } from '../store.ts';
import { judgeLostTokenWrites } from '../unknown/nft-writes.ts';
import {
  changesOf,
  endingOf,
  isMoving,
  type TokenSight,
  type TokenState,
  takerOf,
} from './rule.ts';

const OPERATIONS_MAX = 100;

/**
 * Judges one conclusive look at a token inside the given transaction. Answers the events to emit.
 */
export async function judgeToken(
  tx: Tx,
  context: Context,
  observation: StoredObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const { contractId, tokenId } = tokenOf(observation.target);
  const before = await findToken(tx, contractId, tokenId);
  if (before && before.observedAt >= observation.startedAt) return [];
  const operations = await listForToken(tx, contractId, tokenId, OPERATIONS_MAX);
  const seen = observation.result === 'seen' ? stateOf(observation) : undefined;
  const token = seen
    ? presentToken(contractId, tokenId, observation, seen)
    : absentToken(contractId, tokenId, observation, before);
  const events: EventDraft[] = [];
  if (seen) events.push(...changeEvents(token, before, operations, observation));
  const gone = !seen && before?.absentSince != null;
  if (gone && before?.presence === 'present')
    events.push(burnedEvent(token, before, operations, observation));
  const state: TokenState | 'absent' = seen ?? 'absent';
  if (seen || gone) {
    const sameToken = before?.presence === 'present' && before.createdText === seen?.createdText;
    const sight = {
      startedAt: observation.startedAt,
      readLagMs: context.settings.readLagMs,
      sameToken,
    };
    const lastHash = before?.lastTxHash ?? null;
    events.push(...(await endOperations(tx, context, operations, { state, sight, lastHash, now })));
  }
  const given = { operations, held: before, seen: state, observation, now };
  events.push(...(await judgeLostTokenWrites(tx, context, given)));
  await saveToken(tx, token);
  await pollAgain(tx, context, observation, { token, gone, operations, now });
  return events;
}

/**
 * A token that the chain still works on, or that is absent for the first time, is looked at again
 * soon.
 */
async function pollAgain(
  tx: Tx,
  { settings }: Context,
  observation: StoredObservation,
  given: { token: Token; gone: boolean; operations: readonly Operation[]; now: Instant },
): Promise<void> {
  const { token, gone, operations, now } = given;
  const unsure = token.absentSince !== null && !gone;
  const newest = operations.find(({ state, settledAt }) => settledAt === null && ENDS.has(state));
  let since: Instant;
  if (unsure) since = now;
  else if (newest) since = newest.recordedAt;
  else if (token.presence === 'present' && isMoving(token))
    since = await movingSince(tx, observation);
  else return;
  await expedite(tx, observation.target, now + pendingIntervalMs(settings, since, now));
}

/** States that a look at the token may end. What people have to decide is not waited for. */
const ENDS: ReadonlySet<State> = new Set<State>(['sending', 'unknown', 'accepted', 'executed']);
const STILL_LOOKS_MAX = 16;

/** Since when, at least, the token has stood as this look shows it. */
async function movingSince(tx: Tx, observation: StoredObservation): Promise<Instant> {
  const stands = (other: StoredObservation) => {
    const [a, b] = [other, observation].map(
      ({ record }) => record as Record<string, unknown> | null,
    );
    return a?.lastTxHash === b?.lastTxHash && a?.status === b?.status;
  };
  let since = observation.startedAt;
  for (const other of await listObservations(tx, observation.target, STILL_LOOKS_MAX)) {
    if (other.startedAt > observation.startedAt) continue;
    if (!stands(other)) break;
    since = other.startedAt;
  }
  return since;
}

function tokenOf(target: string): { contractId: bigint; tokenId: bigint } {
  const [, contract, token] = target.split(':');
  return { contractId: BigInt(contract ?? ''), tokenId: BigInt(token ?? '') };
}

function stateOf(
  observation: StoredObservation,
): TokenState & { createdText: string; ownedText: string } {
  const record = observation.record as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    owner: text(record.owner),
    creator: text(record.creator),
    uri: text(record.uri),
    metadata: text(record.metaData),
    extraData: text(record.extraData),
    status: Number(must(wholeOf(record.status), 'status of a look')),
    locked: record.locked ? 1 : 0,
    lastTxHash: text(record.lastTxHash),
    createdText: text(record.createdAtText),
    ownedText: text(record.ownedAtText),
  };
}

function presentToken(
  contractId: bigint,
  tokenId: bigint,
  observation: StoredObservation,
  seen: TokenState & { createdText: string; ownedText: string },
): Token {
  return {
    ...seen,
    contractId,
    tokenId,
    observedAt: observation.startedAt,
    presence: 'present',
    absentSince: null,
  };
}

/** Absence counts from the first look that said so; the second makes it so. */
function absentToken(
  contractId: bigint,
  tokenId: bigint,
  observation: StoredObservation,
  before: Token | undefined,
): Token {
  const nothing: TokenState = {
    owner: null,
    creator: null,
    uri: null,
    metadata: null,
    extraData: null,
    status: null,
    locked: null,
    lastTxHash: null,
  };
  const confirmed = before?.absentSince != null;
  return {
    ...nothing,
    createdText: null,
    ownedText: null,
    ...before,
    contractId,
    tokenId,
    observedAt: observation.startedAt,
    presence: before === undefined || confirmed ? 'absent' : 'present',
    absentSince: before?.absentSince ?? observation.endedAt,
  };
}

function changeEvents(
  token: Token,
  before: Token | undefined,
  operations: readonly Operation[],
  observation: StoredObservation,
): EventDraft[] {
  const known = before?.presence === 'present' ? before : undefined;
  const cause = causeOf(token.lastTxHash, operations);
  const mintedByUs = operations.some(
    (o) => (o.kind === 'mint' || o.kind === 'mint_sequential') && o.outcome !== 'not_executed',
  );
  // One that was looked for in vain before was made meanwhile, or made again.
  const minted = mintedByUs || before?.presence === 'absent';
  return changesOf(known, token, minted).map((type) =>
    tokenEvent(type, token, known, cause, observation.endedAt),
  );
}

function burnedEvent(
  token: Token,
  before: Token,
  operations: readonly Operation[],
  observation: StoredObservation,
): EventDraft {
  const burn = operations.find((o) => o.kind === 'burn' && o.outcome !== 'not_executed');
  return tokenEvent('token.burned', token, before, burn?.id ?? 'external', observation.endedAt);
}

function causeOf(hash: string | null, operations: readonly Operation[]): string {
  return operations.find((o) => o.txHash !== null && o.txHash === hash)?.id ?? 'external';
}

function tokenEvent(
  type: EventType,
  token: Token,
  before: Token | undefined,
  cause: string,
  occurredAt: Instant,
): EventDraft {
  const data = {
    contract_id: decimalText(token.contractId),
    token_id: decimalText(token.tokenId),
    cause,
    previous: before ? shown(before) : null,
    current: shown(token),
  };
  const subject = `token:${token.contractId}:${token.tokenId}`;
  return { type, subject, occurredAt, data } as EventDraft;
}

function shown(token: TokenState) {
  return {
    owner: token.owner,
    status: token.status,
    locked: token.locked,
    extra_data: token.extraData,
    last_tx_hash: token.lastTxHash,
  };
}

/** Settles and fails the operations that this sight of the token ends. */
async function endOperations(
  tx: Tx,
  { operations }: Context,
  pending: readonly Operation[],
  given: {
    state: TokenState | 'absent';
    sight: TokenSight;
    lastHash: string | null;
    now: Instant;
  },
): Promise<EventDraft[]> {
  const { state, sight, lastHash, now } = given;
  const waiting = pending.filter((o) => o.state === 'accepted' || o.state === 'executed');
  const burns = waiting.filter(({ kind }) => kind === 'burn');
  const taker = state === 'absent' ? takerOf(burns, lastHash) : undefined;
  const moves = waiting.flatMap((operation) => {
    const ending = endingOf(operation, state, sight);
    if (!ending) return [];
    const ended = { id: operation.id, at: now, settledAt: now };
    // A token is burned once: of two accepted burns the chain must have failed the other.
    return taker && taker !== operation
      ? [{ ...ended, to: 'failed' as const, cause: 'another burn took the token' }]
      : [{ ...ended, ...ending }];
  });
  const moved = await operations.move(tx, moves);
  return moved.map((operation) => ({
    type: operation.state === 'failed' ? 'operation.failed' : 'operation.settled',
    subject: `operation:${operation.id}`,
    occurredAt: now,
    data: operationFields(operation),
  }));
}
