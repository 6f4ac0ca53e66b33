/**
 * When a new write may go beside those whose outcome is still open. Pure.
 *
 * Balances tell open writes apart while no two subsets of them come to the same sum. A new amount
 * keeps that so exactly if it is not the difference of two sums of the open ones; whether those can
 * be told apart from each other is not its fault. Writes of one kind on one token, and sequential
 * mints that are equal in every field, have no amount: they go one at a time.
 */
import { addressKey } from '../../kernel/addresses.ts';
import { sha256Hex } from '../../kernel/json.ts';
import { subsetSums } from '../../kernel/subset-sums.ts';
import {
  type Effect,
  type EffectSettings,
  effectsOrNone,
  ownWalletsOf,
  walletEffectsOf,
} from '../effects.ts';
import { type Kind, NFT_KINDS, type WriteFields } from '../operation.ts';

/** What admission knows of a write. */
export interface ConflictScope {
  /** By how much it would change the wallet of each user, by lower-case address. */
  effects: ReadonlyMap<string, bigint>;
  /** The token (or the equal mints) that it acts on, with its kind; undefined when it has none. */
  conflictKey: string | undefined;
}

/** A write whose outcome is open. */
export interface OpenWrite extends ConflictScope {
  id: string;
}

/** With more open on one wallet than this nothing is told apart: 2^12 sums are looked at. */
export const OPEN_MAX = 12;

/**
 * The open writes beside which this one could not be told apart; none: it may go. A wallet that it
 * does not change says nothing.
 */
export function conflictsOf(write: ConflictScope, open: readonly OpenWrite[]): string[] {
  const found = new Set<string>();
  for (const other of open)
    if (write.conflictKey !== undefined && other.conflictKey === write.conflictKey)
      found.add(other.id);
  for (const [wallet, effect] of write.effects) {
    const beside = open.filter(({ effects }) => (effects.get(wallet) ?? 0n) !== 0n);
    const others = beside.map(({ effects }) => effects.get(wallet) ?? 0n);
    if (!canTellApart(effect, others)) for (const { id } of beside) found.add(id);
  }
  return [...found];
}

/** Whether the sum of what was executed always says if this one was among it. */
export function canTellApart(own: bigint, others: readonly bigint[]): boolean {
  if (own === 0n || others.length === 0) return true;
  if (others.length > OPEN_MAX) return false;
  const sums = subsetSums(others);
  const without = new Set(sums);
  return !sums.some((sum) => without.has(sum + own));
}

/** A write's marks, its effects, and the addresses (lower case) of every wallet it changes. */
export interface WriteImpact {
  scope: ConflictScope;
  effects: Effect[];
  wallets: string[];
}

/**
 * Own wallets (operators, fees,
 * collection) never conflict: their balances take too many writes.
 */
export function impactOf(kind: Kind, fields: WriteFields, settings: EffectSettings): WriteImpact {
  const none = { fromAddr: null, toAddr: null, operationNo: null, amount: null, feeAmount: null };
  const write = { ...none, ...fields, kind };
  const own = new Set(ownWalletsOf(settings).map(addressKey));
  const wallets = walletEffectsOf(write, settings);
  const users = new Map([...wallets].filter(([key]) => !own.has(key)));
  return {
    scope: { effects: users, conflictKey: conflictKeyOf(kind, fields) },
    effects: effectsOrNone(write, settings),
    wallets: [...wallets.keys()],
  };
}

/** What names the token or the equal mints that a write acts on. */
export function conflictKeyOf(kind: Kind, fields: WriteFields): string | undefined {
  const { contractId, tokenId } = fields;
  if (!NFT_KINDS.includes(kind) || contractId == null) return undefined;
  if (kind !== 'mint_sequential')
    return tokenId == null ? undefined : `${kind}:${contractId}:${tokenId}`;
  const { tokenUri = null, metaData = null, extraData = null } = fields;
  const receiver = addressOf(fields);
  if (receiver === null) return undefined;
  const told = sha256Hex(JSON.stringify([receiver, tokenUri, metaData, extraData]));
  return `${kind}:${contractId}:${told}`;
}

/**
 * The names under which writes wait for each other: the wallets of users and the token. Queued
 * writes that share one keep their order.
 */
export function lockNamesOf(kind: Kind, fields: WriteFields, marks: ConflictScope): string[] {
  const { contractId, tokenId } = fields;
  const names = [...marks.effects.keys()].map((wallet) => `wallet:${wallet}`);
  if (marks.conflictKey === undefined) return names;
  const token = kind === 'mint_sequential' ? addressOf(fields) : tokenId;
  return [...names, `token:${contractId}:${token}`];
}

function addressOf({ toAddr }: WriteFields): string | null {
  return toAddr == null ? null : addressKey(toAddr);
}
