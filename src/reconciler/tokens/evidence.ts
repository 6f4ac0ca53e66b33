/**
 * What a token says about an NFT write whose answer was lost. Pure. After the evidence table of the
 * polling study, 3.4: the token as it was before the write, the hash it shows now, and what our
 * other writes on it explain. What two stories fit is left open.
 */

import type { Instant } from '../../kernel/clock.ts';
import { sameJsonText } from '../../kernel/json.ts';
import type { Operation } from '../../operations/operations.ts';
import { COMPLETE, FAILED, hasEffect, sameAddress, type TokenState } from './rule.ts';

/** How the hash of a token stands to the write whose answer was lost. */
export type HashChange =
  /** The hash from before the write. */
  | 'none'
  /** The hash of another operation of ours that came later. */
  | 'other'
  /** A hash that nobody claims. */
  | 'new';

/** A token as a look shows it; the service's own texts tell when it was made and last moved. */
export type SeenToken = TokenState & { createdText?: string | null; ownedText?: string | null };

/** What is known beside the token itself. */
export interface TokenSurroundings {
  change: HashChange;
  /** Whether the token was seen, or made by us, before the write was sent. */
  existed: boolean;
  /** Our other writes on the token, refused ones included. */
  others: readonly Operation[];
  /** False when another lost write on the token may own what it shows. */
  alone: boolean;
}

export interface TokenSaid {
  outcome: 'executed' | 'not_executed';
  cause: string;
}

const executed = (cause: string): TokenSaid => ({ outcome: 'executed', cause });
const notExecuted = (cause: string): TokenSaid => ({ outcome: 'not_executed', cause });

/**
 * What a token says about one lost write; undefined when it says nothing yet. That a write was not
 * executed counts only for a look after quiescence, which is the caller's to know.
 */
export function tokenEvidence(
  operation: Operation,
  token: SeenToken | 'absent',
  around: TokenSurroundings,
): TokenSaid | undefined {
  const { kind } = operation;
  if (token === 'absent') {
    if (kind === 'burn' && around.existed) return executed('the token is gone');
    if (kind === 'mint') return notExecuted('there is no such token');
    return undefined;
  }
  if (around.change === 'none') return notExecuted('the token did not change');
  if (kind === 'mint') return mintSaid(operation, token, around);
  if (!around.existed) return undefined;
  if (token.status === FAILED && around.change === 'new' && around.alone)
    return executed('the chain failed a hash that nobody else claims');
  return kind === 'burn'
    ? burnSaid(operation, token, around)
    : changeSaid(operation, token, around);
}

/** A number is free again after a mint that the chain failed. */
function mintSaid(
  operation: Operation,
  token: SeenToken,
  { change, existed, others }: TokenSurroundings,
): TokenSaid | undefined {
  const free = !existed || preImageOf(operation)?.status === FAILED;
  const asAsked =
    token.uri === operation.tokenUri && sameJsonText(token.metadata, operation.metaData);
  const standing = others.filter(({ outcome }) => outcome !== 'not_executed');
  // Another mint of ours under this number may have made it.
  if (!free || !asAsked || standing.some(({ kind }) => kind.startsWith('mint'))) return undefined;
  const owned = sameAddress(operation.toAddr, token.owner);
  if (change === 'new') return owned ? executed('the token exists as asked') : undefined;
  const moved = standing.some(
    ({ kind, toAddr }) => kind === 'transfer_from' && sameAddress(toAddr, token.owner),
  );
  return owned || moved
    ? executed('the token exists as asked, under a later hash of ours')
    : undefined;
}

/** A burn that the chain completed leaves no token, whatever its hash. */
function burnSaid(
  operation: Operation,
  token: SeenToken,
  { change }: TokenSurroundings,
): TokenSaid | undefined {
  const created = preImageOf(operation)?.createdText;
  if (token.status !== COMPLETE || !created || created !== token.createdText) return undefined;
  return notExecuted(
    change === 'other'
      ? 'the token is still there under a later hash of ours'
      : 'the token is still there under the hash of a change made elsewhere',
  );
}

/** A change of owner or of extra data, by whether its effect shows. */
function changeSaid(
  operation: Operation,
  token: SeenToken,
  { change, others }: TokenSurroundings,
): TokenSaid | undefined {
  const image = preImageOf(operation);
  const before = image && effectBefore(operation, image);
  const rivals = others.filter((other) => mayHaveChanged(operation, other, image));
  if (hasEffect(operation, token)) {
    // What it shows it may have shown before, or another write of ours may have made it so.
    if (rivals.some((rival) => sameEffect(operation, rival))) return undefined;
    if (before === true && ownedAnew(operation, token, image))
      return executed('the token went to its owner once more');
    if (before !== false) return undefined;
    return executed(
      change === 'new'
        ? 'the token shows the effect under a new hash'
        : 'the token shows the effect under a later hash of ours',
    );
  }
  if (token.status !== COMPLETE || !image || rivals.length > 0) return undefined;
  const still =
    operation.kind === 'transfer_from'
      ? image.ownedText !== null &&
        image.ownedText === token.ownedText &&
        sameAddress(image.owner, token.owner)
      : change === 'other' && sameJsonText(image.extraData, token.extraData);
  return still ? notExecuted('the token changed, but not in what was asked') : undefined;
}

/** Whether the service tells that the token came to the owner whom it had already. */
function ownedAnew(operation: Operation, token: SeenToken, image: PreImage | undefined): boolean {
  if (operation.kind !== 'transfer_from' || !image?.ownedText || !token.ownedText) return false;
  return token.status === COMPLETE && image.ownedText !== token.ownedText;
}

/** Whether the effect showed before the write already; undefined when that is not known. */
function effectBefore(operation: Operation, image: PreImage): boolean | undefined {
  if (operation.kind === 'transfer_from')
    return image.owner === null ? undefined : sameAddress(operation.toAddr, image.owner);
  return image.extraData === null ? undefined : sameJsonText(operation.extraData, image.extraData);
}

/** Whether another write of ours may have changed the same since the token was seen before. */
function mayHaveChanged(operation: Operation, other: Operation, image: PreImage | undefined) {
  if (other.kind !== operation.kind || other.outcome === 'not_executed') return false;
  const settledBefore =
    other.settledAt !== null && image?.at != null && other.settledAt <= image.at;
  return !settledBefore;
}

function sameEffect(a: Operation, b: Operation): boolean {
  return a.kind === 'transfer_from'
    ? sameAddress(a.toAddr, b.toAddr)
    : sameJsonText(a.extraData, b.extraData);
}

/**
 * What a hash on the token means for a write, by what is known from before and of our other writes.
 */
export function hashChange(
  operation: Operation,
  hash: string | null,
  others: readonly Operation[],
): HashChange {
  if (hash !== null && hash === preImageOf(operation)?.lastTxHash) return 'none';
  const owner = others.find(({ txHash }) => txHash !== null && txHash === hash);
  if (!owner) return 'new';
  const sentAt = operation.sentAt ?? operation.recordedAt;
  return (owner.answeredAt ?? owner.recordedAt) <= sentAt ? 'none' : 'other';
}

/** The token as it was seen before the write was sent; null for what is not known of it. */
export interface PreImage {
  lastTxHash: string | null;
  status: number | null;
  owner: string | null;
  extraData: string | null;
  createdText: string | null;
  ownedText: string | null;
  at: Instant | null;
}

export function preImageOf(operation: Operation): PreImage | undefined {
  const image = operation.preImage;
  if (!image || typeof image !== 'object' || Array.isArray(image)) return undefined;
  const { token, at } = image;
  if (!token || typeof token !== 'object' || Array.isArray(token)) return undefined;
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
