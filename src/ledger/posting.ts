/**
 * What a write means for the books: which accounts move, by how much, and which token moved. Pure
 * rules over the operation and the installation's books; nothing here reads or writes anything. A
 * write that cannot be posted is refused with the reason, never guessed.
 */

import { addressKey, isAddress } from '../kernel/addresses.ts';
import { sumOf } from '../kernel/amounts.ts';
import { unreachable } from '../kernel/assert.ts';
import type { Kind, Operation, WriteFields } from '../operations/operations.ts';

/** How this installation reads fees, and the wallets behind operators, fees and collection. */
export interface Books {
  /** Whether a fee is paid on top of the amount or deducted from it. */
  feeMode: 'on_top' | 'deducted';
  /** Wallet address by operator number (decimal text). */
  operators: ReadonlyMap<string, string>;
  feesAddr?: string | undefined;
  collectionAddr?: string | undefined;
}

/** One side of a transaction: the account's balance changes by the amount. */
export interface Leg {
  account: string;
  amount: bigint;
}

export const MOVEMENTS = [
  'opening',
  'mint',
  'transfer',
  'burn',
  'data_change',
  'reversal',
] as const;

/** What happened to one token. */
export interface TokenMove {
  kind: (typeof MOVEMENTS)[number];
  contractId: bigint;
  tokenId: bigint;
  fromAddr: string | null;
  toAddr: string | null;
}

/** What the books need to know of a write. */
export type Asked = { kind: Kind } & Pick<
  Required<WriteFields>,
  'fromAddr' | 'toAddr' | 'operationNo' | 'amount' | 'feeAmount'
>;

/** A write that says something the books cannot hold; the message is kept beside the row. */
export class Unpostable extends Error {
  override readonly name = 'Unpostable';
}

/** The account of a wallet: `wallet:<addr>`. */
export function accountOfWallet(addr: string): string {
  return `wallet:${addr}`;
}

/** What two spellings of one account share. */
export function accountKey(name: string): string {
  return addressKey(name);
}

const NAME = /^(?:(wallet):([\x21-\x7e]{42})|(operator):\d+|(fees|collection|opening|external))$/;

/** The kind of an account by its name. @throws Unpostable for a name that no account may have */
export function accountKind(name: string): string {
  const parts = NAME.exec(name);
  const kind = parts?.[1] ?? parts?.[3] ?? parts?.[4];
  if (!kind) throw new Unpostable('the account has no valid name');
  return kind;
}

/**
 * The legs of a token write, without zeros, one per account; they sum to zero. A transfer to
 * oneself keeps its two legs, because it is a fact. Other kinds of write have no legs.
 * @throws Unpostable when a party or an amount is missing or impossible
 */
export function legsOf(operation: Asked, books: Books): Leg[] {
  const legs = rawLegs(operation, books);
  const merged = new Map<string, Leg>();
  for (const { account, amount } of legs) {
    const key = accountKey(account);
    const leg = merged.get(key);
    merged.set(key, { account: leg?.account ?? account, amount: (leg?.amount ?? 0n) + amount });
  }
  const moving = [...merged.values()].filter((leg) => leg.amount !== 0n);
  return moving.length > 0 ? moving : legs.filter((leg) => leg.amount !== 0n);
}

/** The keys of the wallets that a write changes once executed; none if it cannot be posted. */
export function walletKeysOf(operation: Asked, books: Books): string[] {
  return [...walletEffectsOf(operation, books).keys()];
}

/** By how much a write changes each wallet once executed, by key; none if it cannot be posted. */
export function walletEffectsOf(operation: Asked, books: Books): Map<string, bigint> {
  const effects = new Map<string, bigint>();
  for (const { account, amount } of legsOrNone(operation, books)) {
    if (!account.startsWith('wallet:')) continue;
    const key = addressKey(account.slice('wallet:'.length));
    effects.set(key, (effects.get(key) ?? 0n) + amount);
  }
  return effects;
}

/** The addresses of wallets that our own books live in. */
export function walletsOfBooks({ operators, feesAddr, collectionAddr }: Books): string[] {
  return [...operators.values(), feesAddr, collectionAddr].filter((addr) => addr !== undefined);
}

/** By how much a write changes that account once executed; 0 for one that cannot be posted. */
export function effectOn(operation: Asked, account: string, books: Books): bigint {
  const own = legsOrNone(operation, books).filter(
    (leg) => accountKey(leg.account) === accountKey(account),
  );
  return sumOf(own.map((leg) => leg.amount));
}

function legsOrNone(operation: Asked, books: Books): Leg[] {
  try {
    return legsOf(operation, books);
  } catch (error) {
    if (error instanceof Unpostable) return [];
    throw error;
  }
}

function rawLegs(operation: Asked, books: Books): Leg[] {
  const { kind } = operation;
  if (kind !== 'give' && kind !== 'receive_from' && kind !== 'transfer') return [];
  const amount = positive(operation.amount);
  const fee = feeOf(operation, books, amount);
  const paid = books.feeMode === 'on_top' ? amount + fee : amount;
  const received = paid - fee;
  const from = () => wallet(operation.fromAddr, 'sender');
  const to = () => wallet(operation.toAddr, 'receiver');
  switch (kind) {
    case 'give':
      return [
        { account: operatorAccount(operation.operationNo, books), amount: -amount },
        { account: to(), amount },
      ];
    case 'receive_from':
      return [
        { account: from(), amount: -paid },
        { account: configured(books.collectionAddr, 'collection'), amount: received },
        { account: configured(books.feesAddr, 'fees'), amount: fee },
      ];
    case 'transfer':
      return [
        { account: from(), amount: -paid },
        { account: to(), amount: received },
        { account: configured(books.feesAddr, 'fees'), amount: fee },
      ];
    default:
      return unreachable(kind);
  }
}

function positive(amount: bigint | null): bigint {
  if (amount === null) throw new Unpostable('the amount is not known');
  if (amount <= 0n) throw new Unpostable('the amount is not positive');
  return amount;
}

function feeOf({ kind, feeAmount }: Asked, books: Books, amount: bigint): bigint {
  const fee = feeAmount ?? 0n;
  if (fee < 0n) throw new Unpostable('the fee is negative');
  if (kind === 'give' && fee !== 0n) throw new Unpostable('a give has no fee');
  if (books.feeMode === 'deducted' && fee > amount)
    throw new Unpostable('the fee exceeds the amount it is deducted from');
  return fee;
}

function wallet(addr: string | null, party: string): string {
  if (addr === null || !isAddress(addr)) throw new Unpostable(`the ${party} is not an address`);
  return accountOfWallet(addr);
}

function operatorAccount(no: bigint | null, books: Books): string {
  if (no === null || no < 0n) throw new Unpostable('the operator is not known');
  return configured(books.operators.get(no.toString()), `operator:${no}`);
}

/** One account with the wallet, where the wallet is known. */
function configured(addr: string | undefined, name: string): string {
  return addr === undefined ? name : accountOfWallet(addr);
}

const TOKEN_MOVE: Partial<Record<Kind, TokenMove['kind']>> = {
  mint: 'mint',
  mint_sequential: 'mint',
  burn: 'burn',
  transfer_from: 'transfer',
  set_extra_data: 'data_change',
};

/**
 * What an NFT write did to its token; undefined for other kinds.
 * @throws Unpostable when the token is not known
 */
export function tokenMoveOf(operation: Operation): TokenMove | undefined {
  const kind = TOKEN_MOVE[operation.kind];
  if (!kind) return undefined;
  const { contractId, tokenId, fromAddr, toAddr } = operation;
  if (contractId === null || tokenId === null) throw new Unpostable('the token is not known');
  return { kind, contractId, tokenId, fromAddr, toAddr };
}
