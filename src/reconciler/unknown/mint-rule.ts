/**
 * What a complete sweep over a contract's tokens says of a mint whose answer, and with it the
 * token's number, was lost. Pure. A token is its result when contract, URI and metadata are equal,
 * which nobody can change, and owner and extra data are, unless they were changed since. What could
 * be its result but is not proved to be stands in the way of both conclusions.
 */

import { sameJsonText } from '../../kernel/json.ts';
import type { Operation } from '../../operations/operations.ts';
import { sameAddress, type TokenState } from '../tokens/rule.ts';

/** A token as a sweep lists it, or as the newest look saw it that is gone by now. */
export interface ListedToken extends TokenState {
  tokenId: bigint;
  createdText: string;
  ownedText: string;
}

/** A token with what the journal and earlier looks know of it. */
export interface ScannedToken extends ListedToken {
  /** Another operation made it, by its number or its hash. */
  claimed: boolean;
  /** It was there before the write was sent. */
  knownBefore: boolean;
  /** The hash that it shows is not known to be of another write, or of its end. */
  hashFree: boolean;
  /** A write of ours explains another owner, or other data, than it was made with. */
  ownerExplained: boolean;
  dataExplained: boolean;
}

/** How a token stands to a lost mint. */
export type Match = 'equal' | 'possible' | 'no';

/**
 * Whether a token can be what the mint made. An owner other than the receiver is possible only
 * where the service itself tells of a change of owner since the token was made.
 */
export function matchOf(operation: Operation, token: ScannedToken): Match {
  if (token.uri !== (operation.tokenUri ?? '')) return 'no';
  if (!sameJsonText(token.metadata, operation.metaData)) return 'no';
  const owned = sameAddress(token.owner, operation.toAddr);
  const moved = token.ownedText !== token.createdText || token.ownedText === '';
  if (!owned && !moved) return 'no';
  const ownerFits = owned || token.ownerExplained;
  const dataFits = sameJsonText(token.extraData, operation.extraData) || token.dataExplained;
  return ownerFits && dataFits ? 'equal' : 'possible';
}

export type MintSaid =
  | { outcome: 'executed'; token: ScannedToken }
  | { outcome: 'not_executed' }
  /** Nothing is proved; these tokens are what people should look at. */
  | { outcome: 'unclear'; why: string; candidates: ScannedToken[] };

/**
 * What the sweep says of one mint.
 * @param rivals other mints whose token nobody knows and which may have made one of these
 * @param burned whether a token was burned since whose origin nobody knows
 */
export function mintEvidence(
  operation: Operation,
  tokens: readonly ScannedToken[],
  rivals: readonly Operation[],
  burned: boolean,
): MintSaid {
  const matching = tokens
    .filter(({ claimed, knownBefore }) => !claimed && !knownBefore)
    .map((token) => ({ token, match: matchOf(operation, token) }))
    .filter(({ match }) => match !== 'no');
  const candidates = matching.map(({ token }) => token);
  const [only] = matching;
  if (!only) {
    if (!burned) return { outcome: 'not_executed' };
    return { outcome: 'unclear', why: 'a token of unknown origin was burned', candidates };
  }
  if (matching.length > 1)
    return { outcome: 'unclear', why: 'several tokens may be its result', candidates };
  if (only.match !== 'equal')
    return { outcome: 'unclear', why: 'one token may be its result', candidates };
  if (rivals.some((rival) => matchOf(rival, only.token) !== 'no'))
    return { outcome: 'unclear', why: 'another lost mint may have made the token', candidates };
  return { outcome: 'executed', token: only.token };
}

/**
 * The hash of the mint itself: the token's newest one, unless a later write may have replaced it.
 */
export function mintHashOf(operation: Operation, token: ScannedToken): string | null {
  const untouched =
    token.hashFree &&
    sameAddress(token.owner, operation.toAddr) &&
    token.ownedText === token.createdText &&
    sameJsonText(token.extraData, operation.extraData) &&
    !token.ownerExplained &&
    !token.dataExplained;
  return untouched && token.lastTxHash ? token.lastTxHash : null;
}
