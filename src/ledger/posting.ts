/** Account names, and the movement of an NFT write. Pure. */
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
