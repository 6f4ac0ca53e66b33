/**
 * Evaluates observations of tokens: in one transaction the accepted state, the operations that end,
 * findings about unknown operations, and the events. A token is absent only after two observations
 * in a row.
 */
import type { Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { UnprocessedObservation } from '../../observer/observer.ts';
import {
  endedEvent,
  listForToken,
  type Operation,
  PENDING_STATES,
  SETTLING_STATES,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { nextPollOf, waitFor } from '../resolution.ts';
import { hasOpenMint } from '../unknown/mints.ts';
import { evaluateNftWrites } from '../unknown/nft-writes.ts';
import { endingOf } from './ending.ts';
import type { ObservedToken } from './evidence.ts';
import { recordChangedHolder, wasListedBefore } from './holder.ts';
import {
  causeOf,
  changesOf,
  FAILED,
  isMint,
  isMoving,
  type ObservationContext,
  type TokenEvent,
  type TokenState,
  tokenStateOf,
} from './rule.ts';
import { findToken, saveToken, type Token } from './token.ts';

const OPERATIONS_MAX = 100;

/** Evaluates one conclusive observation of a token. Returns the events to emit. */
export async function evaluateToken(
  tx: Tx,
  deps: Deps,
  observation: UnprocessedObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const { contractId, tokenId } = tokenOf(observation.target);
  const before = await findToken(tx, contractId, tokenId);
  if (before && before.observedAt >= observation.startedAt) return [];
  let operations = await listForToken(tx, contractId, tokenId, OPERATIONS_MAX);
  const seen =
    observation.result === 'seen'
      ? tokenStateOf(observation.record as Record<string, unknown>)
      : undefined;
  const token = seen
    ? presentToken({ contractId, tokenId }, observation, seen, before)
    : absentToken({ contractId, tokenId }, observation, before);
  const events: EventDraft[] = [];
  if (seen) {
    const { startedAt } = observation;
    const isNew = before === undefined && (await wasListedBefore(tx, contractId, startedAt));
    const isOurs = isNew && (await hasOpenMint(tx, contractId, token.uri ?? ''));
    const other = isOurs ? 'unknown' : 'external';
    events.push(...changeEvents(token, { before, isNew, other }, operations, observation));
  }
  const gone = !seen && isSecond(observation, before);
  if (gone && before?.presence === 'present')
    events.push(burnedEvent(token, before, operations, observation));
  const state: ObservedToken | 'absent' = seen ?? 'absent';
  if (seen || gone) {
    const sameToken = before?.presence === 'present' && before.createdText === seen?.createdText;
    const observed = {
      startedAt: observation.startedAt,
      readLagMs: deps.settings.readLagMs,
      sameToken,
      lastHash: before?.lastTxHash ?? null,
    };
    const notAt = before?.observedAt ?? null;
    const input = { state, observed, notAt, now };
    const ended = await endOperations(tx, deps, operations, input);
    operations = operations.map((operation) => ended.get(operation.id) ?? operation);
    events.push(...[...ended.values()].map((operation) => endedEvent(operation, now)));
  }
  const input = { operations, held: before, seen: state, observation, now };
  events.push(...(await evaluateNftWrites(tx, deps, input)));
  const { readLagMs } = deps.settings;
  const about = { token, before, operations, observation, readLagMs, now };
  const next = await recordChangedHolder(tx, about);
  await saveToken(tx, next);
  pollAgain(deps, observation, { token: next, gone, operations, now });
  return events;
}

/**
 * Polls a token soon while the chain processes it, an operation on it is open, it is absent once,
 * or it may be the result of an open mint.
 */
function pollAgain(
  deps: Deps,
  observation: UnprocessedObservation,
  input: { token: Token; gone: boolean; operations: readonly Operation[]; now: Instant },
): void {
  const { token, gone, operations, now } = input;
  const unsure = token.absentSince !== null && !gone;
  const poll = { polledAt: observation.startedAt, now };
  const times = operations
    .filter(({ state, settledAt }) => settledAt === null && PENDING_STATES.has(state))
    .map((operation) => nextPollOf(operation, deps, poll));
  if (unsure) times.push(deps.polls.nextAt({ kind: 'confirmation', since: now }, poll));
  else if (times.length === 0 && isUnfinished(token, operations)) {
    const { contractId } = token;
    const wait = { kind: 'chain', contractId, since: observation.unchangedSince };
    times.push(deps.polls.nextAt(wait, poll));
  }
  if (times.length > 0) deps.pollBy(observation.target, Math.min(...times));
}

/**
 * A token without operations whose holder is not recorded may be the result of an open mint, unless
 * the chain failed it.
 */
function isUnfinished(token: Token, operations: readonly Operation[]): boolean {
  const { presence, status, differsSince } = token;
  const isUnclaimed = operations.length === 0 && differsSince !== null && status !== FAILED;
  return isUnclaimed || (presence === 'present' && isMoving(token));
}

function tokenOf(target: string): { contractId: bigint; tokenId: bigint } {
  const [, contract, token] = target.split(':');
  return { contractId: BigInt(contract ?? ''), tokenId: BigInt(token ?? '') };
}

const NOT_RECORDED = { recordedOwner: null, differsSince: null, differsAfter: null };

function presentToken(
  token: { contractId: bigint; tokenId: bigint },
  observation: UnprocessedObservation,
  seen: TokenState & { createdText: string; ownedText: string },
  before: Token | undefined,
): Token {
  return {
    ...NOT_RECORDED,
    ...before,
    ...seen,
    ...token,
    observedAt: observation.startedAt,
    presence: 'present',
    absentSince: null,
  };
}

/** Whether an absence confirms an earlier one, which it must not overlap. */
function isSecond({ startedAt }: UnprocessedObservation, before: Token | undefined): boolean {
  return before?.absentSince != null && startedAt > before.absentSince;
}

/** The first absence is recorded; the second one confirms it. */
function absentToken(
  token: { contractId: bigint; tokenId: bigint },
  observation: UnprocessedObservation,
  before: Token | undefined,
): Token {
  const empty: TokenState = {
    owner: null,
    creator: null,
    uri: null,
    metadata: null,
    extraData: null,
    status: null,
    locked: null,
    lastTxHash: null,
  };
  const confirmed = isSecond(observation, before);
  return {
    ...empty,
    ...NOT_RECORDED,
    createdText: null,
    ownedText: null,
    ...before,
    ...token,
    observedAt: observation.startedAt,
    presence: before === undefined || confirmed ? 'absent' : 'present',
    absentSince: before?.absentSince ?? observation.endedAt,
  };
}

function changeEvents(
  token: Token,
  {
    before,
    isNew,
    other,
  }: { before: Token | undefined; isNew: boolean; other: 'external' | 'unknown' },
  operations: readonly Operation[],
  observation: UnprocessedObservation,
): EventDraft[] {
  const known = before?.presence === 'present' ? before : undefined;
  const mintedByUs = operations.some((o) => isMint(o) && o.outcome !== 'not_executed');
  // An absent token that is present was minted meanwhile, or again.
  const minted = mintedByUs || isNew || before?.presence === 'absent';
  return changesOf(known, token, minted).map((type) => {
    const cause = causeOf(type, token, operations, before?.observedAt) ?? other;
    return tokenEvent(type, token, known, cause, observation.endedAt);
  });
}

function burnedEvent(
  token: Token,
  before: Token,
  operations: readonly Operation[],
  observation: UnprocessedObservation,
): EventDraft {
  const cause = causeOf('token.burned', before, operations, before.observedAt) ?? 'external';
  return tokenEvent('token.burned', token, before, cause, observation.endedAt);
}

function tokenEvent(
  type: TokenEvent,
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
  return { type, subject, occurredAt, data };
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

/** Settles and fails the operations that the observation ends; returns these. */
async function endOperations(
  tx: Tx,
  { operations, polls }: Deps,
  written: readonly Operation[],
  input: {
    state: ObservedToken | 'absent';
    observed: ObservationContext;
    /** When the token was polled before. */
    notAt: Instant | null;
    now: Instant;
  },
): Promise<Map<string, Operation>> {
  const { state, observed, notAt, now } = input;
  const shownAt = observed.startedAt;
  const waiting = written.filter((o) => SETTLING_STATES.has(o.state));
  const moves = waiting.flatMap((operation) => {
    const others = written.filter((other) => other !== operation);
    const ending = endingOf(operation, state, observed, others);
    return ending ? [{ id: operation.id, at: now, settledAt: now, ...ending }] : [];
  });
  const moved = await operations.move(tx, moves);
  tx.afterCommit(() => {
    for (const operation of moved) polls.learn(waitFor(operation), { notAt, shownAt });
  });
  return new Map(moved.map((operation) => [operation.id, operation]));
}
