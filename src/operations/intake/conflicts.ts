/**
 * Decides whether a new write conflicts with open ones. Pure.
 *
 * Balances identify the executed writes as long as no two subsets of the open ones have the same
 * sum. A new amount keeps this property if it is not the difference of two sums of the open ones;
 * whether those are ambiguous among themselves does not matter. One of its wallets is enough: the
 * many who pay one merchant are told apart by their own wallets. Writes of one kind on one token,
 * and sequential mints with equal fields, have no amount to tell them apart: only one may be open.
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

/** The wallets and the token on which a write may conflict. */
export interface ConflictScope {
  /** The change of each user's wallet, by lower-case address. */
  effects: ReadonlyMap<string, bigint>;
  /** Equal for writes of one kind on one token, and for equal sequential mints. */
  conflictKey: string | undefined;
}

/** A write whose outcome is open. */
export interface OpenWrite extends ConflictScope {
  id: string;
}

/** More open writes on one wallet always conflict, which limits the sums to 2^12. */
export const OPEN_MAX = 12;

/** The ids of the open writes that the write conflicts with. */
export function conflictsOf(write: ConflictScope, open: readonly OpenWrite[]): string[] {
  const found = new Set<string>();
  for (const other of open)
    if (write.conflictKey !== undefined && other.conflictKey === write.conflictKey)
      found.add(other.id);
  const onWallets = [...write.effects].map(([wallet, effect]) => {
    const others = open.filter(({ effects }) => (effects.get(wallet) ?? 0n) !== 0n);
    const amounts = others.map(({ effects }) => effects.get(wallet) ?? 0n);
    return { others, apart: canTellApart(effect, amounts) };
  });
  if (!onWallets.some(({ apart }) => apart))
    for (const { others } of onWallets) for (const { id } of others) found.add(id);
  return [...found];
}

/** Whether any sum of executed writes shows if this one is part of it. */
export function canTellApart(own: bigint, others: readonly bigint[]): boolean {
  if (own === 0n || others.length === 0) return true;
  if (others.length > OPEN_MAX) return false;
  const sums = subsetSums(others);
  const distinct = new Set(sums);
  return !sums.some((sum) => distinct.has(sum + own));
}

/** Where a write may conflict, and its effects. */
export interface WriteImpact {
  scope: ConflictScope;
  effects: Effect[];
}

/**
 * Own wallets (operators, fees, collection) are no part of the scope: too many writes share them.
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
  };
}

/** See `ConflictScope`. */
export function conflictKeyOf(kind: Kind, fields: WriteFields): string | undefined {
  const { contractId, tokenId } = fields;
  if (!NFT_KINDS.includes(kind) || contractId == null) return undefined;
  if (kind !== 'mint_sequential')
    return tokenId == null ? undefined : `${kind}:${contractId}:${tokenId}`;
  const { tokenUri = null, metaData = null, extraData = null } = fields;
  const receiver = addressOf(fields);
  if (receiver === null) return undefined;
  const mint = sha256Hex(JSON.stringify([receiver, tokenUri, metaData, extraData]));
  return `${kind}:${contractId}:${mint}`;
}

/**
 * The wallets of users and the token of a write, as names of locks. Queued writes that share a name
 * keep their order.
 */
export function lockNamesOf(kind: Kind, fields: WriteFields, scope: ConflictScope): string[] {
  const { contractId, tokenId } = fields;
  const names = [...scope.effects.keys()].map((wallet) => `wallet:${wallet}`);
  if (scope.conflictKey === undefined) return names;
  const token = kind === 'mint_sequential' ? addressOf(fields) : tokenId;
  return [...names, `token:${contractId}:${token}`];
}

function addressOf({ toAddr }: WriteFields): string | null {
  return toAddr == null ? null : addressKey(toAddr);
}
