/**
 * What a complete scan of a contract's tokens says about an unknown sequential mint. Pure. A token
 * is its result when contract, URI and metadata, which never change, are equal, and owner and extra
 * data are equal or were changed since. A token that is possibly its result rules out both
 * conclusions.
 */

import { sameAddress } from '../../kernel/addresses.ts';
import { sameJsonText } from '../../kernel/json.ts';
import type { Operation } from '../../operations/operations.ts';
import type { TokenState } from '../tokens/rule.ts';

/** A token as a scan lists it, or as it was last observed. */
export interface ListedToken extends TokenState {
  tokenId: bigint;
  createdText: string;
  ownedText: string;
}

/** A token with what operations and earlier observations say about it. */
export interface ScannedToken extends ListedToken {
  /** Another operation made it, by its number or its hash. */
  claimed: boolean;
  /** It existed before the write was sent. */
  knownBefore: boolean;
  /** Its hash belongs to no known operation, and no known write on it may have made it. */
  hashFree: boolean;
  /** A known operation explains that its owner, or its data, differs from the minted one. */
  ownerExplained: boolean;
  dataExplained: boolean;
}

type Match = 'equal' | 'possible' | 'no';

/**
 * Whether a token can be the result of the mint. An owner other than the receiver is possible only
 * where the service's own timestamps show a change of owner.
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

export type MintFinding =
  | { outcome: 'executed'; token: ScannedToken }
  | { outcome: 'not_executed' }
  | { outcome: 'unclear'; why: string; candidates: ScannedToken[] };

/**
 * What the scan says about one mint.
 * @param rivals other mints whose token is not known
 * @param burned whether a token of unknown origin was burned since
 */
export function mintEvidence(
  operation: Operation,
  tokens: readonly ScannedToken[],
  rivals: readonly Operation[],
  burned: boolean,
): MintFinding {
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
    return { outcome: 'unclear', why: 'another unknown mint may have made the token', candidates };
  return { outcome: 'executed', token: only.token };
}

/** The token's hash, unless a later write may have replaced the mint's own. */
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
