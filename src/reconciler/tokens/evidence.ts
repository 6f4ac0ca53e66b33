/**
 * The evidence table of unknown NFT writes (polling study, 3.4): compares the token before the
 * write with the observed one, its hash, and the effects of other operations. Pure.
 */

import { sameAddress, sameTxHash } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { isObject, membersOf, sameJsonText } from '../../kernel/json.ts';
import type { Operation } from '../../operations/operations.ts';
import { COMPLETE, FAILED, hasEffect, isMint, sentAtOf, type TokenState } from './rule.ts';

export type HashChange =
  /** The hash from before the write. */
  | 'none'
  /** The hash of a later known operation. */
  | 'other'
  /** A hash of no known operation. */
  | 'new';

/** The texts are the service's own timestamps of the mint and of the last change of owner. */
export type ObservedToken = TokenState & { createdText?: string | null; ownedText?: string | null };

/** What is known besides the token itself. */
interface EvidenceContext {
  change: HashChange;
  /** Whether the token was observed, or minted by a known operation, before the send. */
  existed: boolean;
  /** All other operations on the token, rejected ones included. */
  others: readonly Operation[];
  /** False when another open operation on the token may be the cause. */
  alone: boolean;
}

interface TokenFinding {
  outcome: 'executed' | 'not_executed';
  cause: string;
}

const executed = (cause: string): TokenFinding => ({ outcome: 'executed', cause });
const notExecuted = (cause: string): TokenFinding => ({ outcome: 'not_executed', cause });

/**
 * The finding about one unknown write; undefined without one. The caller ignores `not_executed`
 * before quiescence.
 */
export function tokenEvidence(
  operation: Operation,
  token: ObservedToken | 'absent',
  around: EvidenceContext,
): TokenFinding | undefined {
  const { kind } = operation;
  if (token === 'absent') {
    if (kind === 'burn' && around.existed) return executed('the token is gone');
    if (kind === 'mint') return notExecuted('there is no such token');
    return undefined;
  }
  if (around.change === 'none') return notExecuted('the token did not change');
  if (kind === 'mint') return mintFinding(operation, token, around);
  if (!around.existed) return undefined;
  if (token.status === FAILED && around.change === 'new' && around.alone)
    return executed('the chain failed a hash of no other known operation');
  return kind === 'burn'
    ? burnFinding(operation, token, around)
    : changeFinding(operation, token, around);
}

function mintFinding(
  operation: Operation,
  token: ObservedToken,
  { change, existed, others }: EvidenceContext,
): TokenFinding | undefined {
  // A mint that the chain failed leaves the number free.
  const free = !existed || preImageOf(operation)?.status === FAILED;
  const asRequested =
    token.uri === operation.tokenUri && sameJsonText(token.metadata, operation.metaData);
  const baseline = others.filter(({ outcome }) => outcome !== 'not_executed');
  // Another known mint of this number may have made it.
  if (!free || !asRequested || baseline.some(isMint)) return undefined;
  const owned = sameAddress(operation.toAddr, token.owner);
  if (change === 'new') return owned ? executed('the token exists as requested') : undefined;
  const moved = baseline.some(
    ({ kind, toAddr }) => kind === 'transfer_from' && sameAddress(toAddr, token.owner),
  );
  return owned || moved
    ? executed('the token exists as requested, under a later known hash')
    : undefined;
}

function burnFinding(
  operation: Operation,
  token: ObservedToken,
  { change }: EvidenceContext,
): TokenFinding | undefined {
  const created = preImageOf(operation)?.createdText;
  if (token.status !== COMPLETE || !created || created !== token.createdText) return undefined;
  return notExecuted(
    change === 'other'
      ? 'the token still exists under a later known hash'
      : 'the token still exists under the hash of a change made elsewhere',
  );
}

function changeFinding(
  operation: Operation,
  token: ObservedToken,
  { change, others }: EvidenceContext,
): TokenFinding | undefined {
  if (hasEffect(operation, token)) {
    if (!isOwnEffect(operation, token, others)) return undefined;
    const image = preImageOf(operation);
    if (image && effectBefore(operation, image))
      return executed('the token was transferred to its owner again');
    return executed(
      change === 'new'
        ? 'the token shows the effect under a new hash'
        : 'the token shows the effect under a later known hash',
    );
  }
  if (operation.kind === 'set_extra_data' && change !== 'other') return undefined;
  return isUnchanged(operation, token, others)
    ? notExecuted('the token changed, but does not show the effect')
    : undefined;
}

/**
 * Whether a token that shows the owner or data of a write shows them because of it: they are not
 * older, and no other known write has the same.
 */
export function isOwnEffect(
  operation: Operation,
  token: ObservedToken,
  others: readonly Operation[],
): boolean {
  const image = preImageOf(operation);
  if (!image) return false;
  const isRival = (other: Operation) =>
    mayHaveChanged(operation, other, image) && sameEffect(operation, other);
  if (others.some(isRival)) return false;
  const before = effectBefore(operation, image);
  return before === false || (before === true && ownedAnew(operation, token, image));
}

/**
 * Whether a complete token is as it was before a write that would have changed its owner or data,
 * and no other write of that kind can have changed it back.
 */
export function isUnchanged(
  operation: Operation,
  token: ObservedToken,
  others: readonly Operation[],
): boolean {
  const image = preImageOf(operation);
  if (token.status !== COMPLETE || !image) return false;
  if (others.some((other) => mayHaveChanged(operation, other, image))) return false;
  if (operation.kind === 'set_extra_data')
    return image.extraData !== null && sameJsonText(image.extraData, token.extraData);
  return (
    operation.kind === 'transfer_from' &&
    image.ownedText !== null &&
    image.ownedText === token.ownedText &&
    sameAddress(image.owner, token.owner)
  );
}

/** Whether the service's timestamp shows a transfer to the owner whom the token had already. */
function ownedAnew(
  operation: Operation,
  token: ObservedToken,
  image: PreImage | undefined,
): boolean {
  if (operation.kind !== 'transfer_from' || !image?.ownedText || !token.ownedText) return false;
  return token.status === COMPLETE && image.ownedText !== token.ownedText;
}

/** Whether the token showed the effect before the write; undefined when not known. */
function effectBefore(operation: Operation, image: PreImage): boolean | undefined {
  if (operation.kind === 'transfer_from')
    return image.owner === null ? undefined : sameAddress(operation.toAddr, image.owner);
  return image.extraData === null ? undefined : sameJsonText(operation.extraData, image.extraData);
}

/**
 * Whether another operation may have changed the same field since the pre-image: not if it had
 * settled by then, or if the pre-image shows its hash complete.
 */
function mayHaveChanged(operation: Operation, other: Operation, image: PreImage | undefined) {
  if (other.kind !== operation.kind || other.outcome === 'not_executed') return false;
  const { txHash, settledAt } = other;
  const isShown = sameTxHash(txHash, image?.lastTxHash) && image?.status === COMPLETE;
  return !isShown && !(settledAt !== null && image?.at != null && settledAt <= image.at);
}

/** Of two writes of one kind. */
export function sameEffect(a: Operation, b: Operation): boolean {
  return a.kind === 'transfer_from'
    ? sameAddress(a.toAddr, b.toAddr)
    : sameJsonText(a.extraData, b.extraData);
}

export function hashChange(
  operation: Operation,
  hash: string | null,
  others: readonly Operation[],
): HashChange {
  if (sameTxHash(hash, preImageOf(operation)?.lastTxHash)) return 'none';
  const owner = others.find(({ txHash }) => sameTxHash(txHash, hash));
  if (!owner) return 'new';
  return (owner.answeredAt ?? owner.recordedAt) <= sentAtOf(operation) ? 'none' : 'other';
}

/** The token as observed before the send; null for fields that are not known. */
interface PreImage {
  lastTxHash: string | null;
  status: number | null;
  owner: string | null;
  extraData: string | null;
  createdText: string | null;
  ownedText: string | null;
  at: Instant | null;
}

export function preImageOf(operation: Operation): PreImage | undefined {
  const { token, at } = membersOf(operation.preImage);
  if (!isObject(token)) return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const { status } = token;
  return {
    lastTxHash: text(token.lastTxHash),
    status: status === undefined || status === null ? null : Number(status),
    owner: text(token.owner),
    extraData: text(token.extraData),
    createdText: text(token.createdAtText),
    ownedText: text(token.ownedAtText),
    at: typeof at === 'number' ? at : null,
  };
}
