/** Account names, times of effect, and the movements of NFT writes. Pure. */
import type { Instant } from '../kernel/clock.ts';
import { type Kind, type Operation, Unpostable } from '../operations/operations.ts';

/** A change of one token. */
export interface TokenMove {
  kind: 'opening' | 'mint' | 'transfer' | 'burn' | 'data_change' | 'reversal';
  contractId: bigint;
  tokenId: bigint;
  fromAddr: string | null;
  toAddr: string | null;
}

const NAME = /^(?:(wallet):([\x21-\x7e]{42})|(operator):\d+|(fees|collection|opening|external))$/;

/** The kind of an account by its name. @throws Unpostable for an invalid name */
export function accountKind(name: string): string {
  const parts = NAME.exec(name);
  const kind = parts?.[1] ?? parts?.[3] ?? parts?.[4];
  if (!kind) throw new Unpostable('the account has no valid name');
  return kind;
}

const TOKEN_MOVE: Partial<Record<Kind, TokenMove['kind']>> = {
  mint: 'mint',
  mint_sequential: 'mint',
  burn: 'burn',
  transfer_from: 'transfer',
  set_extra_data: 'data_change',
};

/**
 * The movement of an NFT write; undefined for other kinds.
 * @throws Unpostable when the token is not known
 */
export function tokenMoveOf(operation: Operation): TokenMove | undefined {
  const kind = TOKEN_MOVE[operation.kind];
  if (!kind) return undefined;
  const { contractId, tokenId, fromAddr, toAddr } = operation;
  if (contractId === null || tokenId === null) throw new Unpostable('the token is not known');
  return { kind, contractId, tokenId, fromAddr, toAddr };
}

/** A token by its numbers. */
export function tokenKey({ contractId, tokenId }: { contractId: bigint; tokenId: bigint }): string {
  return `${contractId}:${tokenId}`;
}

/**
 * The opening of a token that a write shows to exist although the ledger does not know it: it was
 * there before the daemon, or was minted elsewhere. Undefined if the ledger knows it.
 * @param known how many of it exist in the ledger or were minted by us; changed by the write
 */
export function tokenOpeningOf(move: TokenMove, known: Map<string, number>): TokenMove | undefined {
  if (move.kind === 'mint') return undefined;
  const key = tokenKey(move);
  const before = known.get(key) ?? 0;
  known.set(key, Math.max(before, 1) - (move.kind === 'burn' ? 1 : 0));
  return before > 0
    ? undefined
    : { ...move, kind: 'opening', fromAddr: null, toAddr: move.fromAddr };
}

export function reverseOf(move: TokenMove): TokenMove {
  return { ...move, kind: 'reversal', fromAddr: move.toAddr, toAddr: move.fromAddr };
}

/** When the write took effect, as far as known. */
export function effectiveTimeOf(operation: Operation): {
  effectiveAt: Instant;
  effectiveBasis: string;
} {
  const { effectiveAt, effectiveBasis, answeredAt, recordedAt } = operation;
  if (effectiveAt !== null) return { effectiveAt, effectiveBasis: effectiveBasis ?? 'operation' };
  return answeredAt !== null
    ? { effectiveAt: answeredAt, effectiveBasis: 'answer' }
    : { effectiveAt: recordedAt, effectiveBasis: 'recorded' };
}
