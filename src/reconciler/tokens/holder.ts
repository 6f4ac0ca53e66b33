/**
 * When the ledger records who holds a token: after each change that no operation can still explain
 * or undo. What its movements do not say was then made elsewhere.
 */
import type { Tx } from '../../db/connect.ts';
import { sameAddress } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { recordHolder } from '../../ledger/ledger.ts';
import { findListedAt, type UnprocessedObservation } from '../../observer/observer.ts';
import type { Operation } from '../../operations/operations.ts';
import { hasOpenMint } from '../unknown/mints.ts';
import {
  FAILED,
  isAtWork,
  isMoving,
  type ObservationContext,
  shows,
  type TokenState,
  tookEffectAt,
} from './rule.ts';
import type { Token } from './token.ts';

/**
 * Has the ledger record a changed holder, unless that has to wait. Costs no statement while the
 * holder is the one that was recorded last.
 * @param input.before the token as accepted before this observation
 * @param input.operations those on the token, as this observation left them
 * @returns the token with the holder that is recorded now
 */
export async function recordChangedHolder(
  tx: Tx,
  input: {
    token: Token;
    before: Token | undefined;
    operations: readonly Operation[];
    observation: UnprocessedObservation;
    readLagMs: number;
    now: Instant;
  },
): Promise<Token> {
  const { before, operations, observation, readLagMs, now } = input;
  const token = withDifference(input.token, before, observation);
  const { contractId, tokenId, differsAfter, lastTxHash, uri } = token;
  const state = token.presence === 'present' ? token : 'absent';
  const isHiding = hidesSettled(state, before, operations);
  const differsSince = token.differsSince ?? (isHiding ? observation.unchangedSince : null);
  if (differsSince === null) return token;
  const observed = { startedAt: observation.startedAt, readLagMs };
  if (mustWait(token, operations, observed)) return token;
  const owner = holderOf(token);
  const isFirst = token.recordedOwner === null && owner !== null;
  if (isFirst && (await hasOpenMint(tx, contractId, uri ?? ''))) return token;
  const isNew =
    isFirst && (differsAfter !== null || (await wasListedBefore(tx, contractId, differsSince)));
  // What has settled took effect before this holder was seen, also by a late answer.
  const effects = operations.filter(({ settledAt }) => settledAt !== null).map(tookEffectAt);
  const observedAt = Math.max(differsSince, ...effects.map((at) => at + 1));
  const txHash = owner === null ? null : lastTxHash;
  const holder = { contractId, tokenId, owner, isNew, txHash, observedAt, notBefore: differsAfter };
  await recordHolder(tx, holder, now);
  return { ...token, recordedOwner: owner, differsSince: null, differsAfter: null };
}

/** The token with the time since when its holder is another one than the one recorded last. */
export function withDifference(
  token: Token,
  before: Token | undefined,
  { unchangedSince }: Pick<UnprocessedObservation, 'unchangedSince'>,
): Token {
  const owner = holderOf(token);
  if (sameAddress(owner, token.recordedOwner))
    return { ...token, differsSince: null, differsAfter: null };
  const { differsSince = null, differsAfter = null, observedAt = null } = before ?? {};
  const isKnown = differsSince !== null && before && sameAddress(holderOf(before), owner);
  return {
    ...token,
    differsSince: isKnown ? differsSince : unchangedSince,
    differsAfter: differsSince === null ? observedAt : differsAfter,
  };
}

/**
 * Whether the change may still be undone, or be that of a write of ours: an absence is not
 * confirmed, or the chain or a write is at work. When the chain failed the first hash of a token,
 * the token may not exist.
 */
export function mustWait(
  token: Token,
  operations: readonly Operation[],
  observed: Pick<ObservationContext, 'startedAt' | 'readLagMs'>,
): boolean {
  const { presence, absentSince, status, recordedOwner } = token;
  if (presence === 'present') {
    const isFailed = status === FAILED && recordedOwner === null;
    if (absentSince !== null || isMoving(token) || isFailed) return true;
  }
  return operations.some((operation) => isAtWork(operation, observed));
}

/**
 * Whether a write settled since the token was observed before, by a later write or by people, that
 * the token does not show. The ledger then has to know that its holder is what it was.
 */
function hidesSettled(
  token: TokenState | 'absent',
  before: Token | undefined,
  operations: readonly Operation[],
): boolean {
  return operations.some(
    (operation) =>
      operation.state === 'settled' &&
      (operation.settledAt ?? 0) > (before?.observedAt ?? 0) &&
      !shows(token, operation),
  );
}

/** The owner, empty when it is not known; null for a token that is absent, once or more often. */
function holderOf({ presence, absentSince, owner }: Token): string | null {
  return presence === 'present' && absentSince === null ? (owner ?? '') : null;
}

/** Whether the whole list of its contract had been read before, without this token. */
export async function wasListedBefore(
  tx: Tx,
  contractId: bigint,
  seenAt: Instant,
): Promise<boolean> {
  const listedAt = await findListedAt(tx, contractId);
  return listedAt !== undefined && listedAt < seenAt;
}
