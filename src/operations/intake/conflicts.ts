/**
 * Decides whether a new write conflicts with open ones. Pure.
 *
 * Balances identify the executed writes as long as no two subsets of the open ones have the same
 * sum. A new amount keeps this property if it is not the difference of two sums of the open ones;
 * whether those are ambiguous among themselves does not matter. One of its wallets is enough:
 * payments of many users to one merchant differ in the users' wallets. Writes of one kind on one
 * token, and sequential mints with equal fields, have no amount to tell them apart: only one may be
 * open.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { sha256Hex } from '../../kernel/json.ts';
import { differencesOfSums } from '../../kernel/subset-sums.ts';
import {
  type EffectSettings,
  ownWalletsOf,
  type RecordedEffects,
  recordedEffectsOf,
  walletEffectsOf,
} from '../effects/effects.ts';
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

export interface SentWrite extends OpenWrite {
  sentAt: Instant;
  /** Sent beside others that it conflicts with. */
  ambiguous: boolean;
}

/** More open writes on one wallet always conflict: observations try no more than 2^12 subsets. */
export const OPEN_MAX = 12;

/** The ids of the open writes that the write conflicts with. */
export function conflictsOf(write: ConflictScope, open: readonly OpenWrite[]): string[] {
  const found = new Set<string>();
  for (const other of open)
    if (write.conflictKey !== undefined && other.conflictKey === write.conflictKey)
      found.add(other.id);
  if (walletsApart(write, open).length === 0)
    for (const wallet of write.effects.keys())
      for (const { id } of othersOn(wallet, open)) found.add(id);
  return [...found];
}

/** The wallets of a write that tell it apart from the open ones; one is enough. */
export function walletsApart(write: ConflictScope, open: readonly OpenWrite[]): string[] {
  return [...write.effects].flatMap(([wallet, effect]) => {
    const amounts = othersOn(wallet, open).map(({ effects }) => effects.get(wallet) ?? 0n);
    return canTellApart(effect, amounts) ? [wallet] : [];
  });
}

function othersOn(wallet: string, open: readonly OpenWrite[]): OpenWrite[] {
  return open.filter(({ effects }) => (effects.get(wallet) ?? 0n) !== 0n);
}

/**
 * Whether any sum of executed writes shows if this one is part of it: no difference of two sums is
 * its amount. The others are searched in two halves, which takes a tenth of the time for twelve.
 */
export function canTellApart(own: bigint, others: readonly bigint[]): boolean {
  if (own === 0n || others.length === 0) return true;
  if (others.length > OPEN_MAX) return false;
  const half = others.length >> 1;
  const first = new Set(differencesOfSums(others.slice(0, half)));
  return !differencesOfSums(others.slice(half)).some((sum) => first.has(own - sum));
}

/**
 * How long it may help a write to wait for the open ones that it conflicts with, in ms; 0: not at
 * all. It helps if only writes that are likely to end soon are in the way: not those that are open
 * for longer than `waitMs`, nor ambiguous ones, beside which others were sent already. More than
 * `OPEN_MAX` show that writes come faster than they end.
 */
export function usefulWaitMs(
  write: ConflictScope,
  conflicts: readonly SentWrite[],
  now: Instant,
  waitMs: number,
): number {
  if (conflicts.length > OPEN_MAX) return 0;
  const lasting = conflicts.filter(({ ambiguous, sentAt }) => ambiguous || sentAt + waitMs <= now);
  if (conflictsOf(write, lasting).length > 0) return 0;
  return Math.max(...conflicts.map(({ sentAt }) => sentAt)) + waitMs - now;
}

/** Where a write may conflict, and its effects. */
export interface WriteImpact extends RecordedEffects {
  scope: ConflictScope;
}

/**
 * Own wallets (operators, fees, collection) are no part of the scope: too many writes share them.
 * @param at the send, or the present before it
 */
export function impactOf(
  { kind, fields, at }: { kind: Kind; fields: WriteFields; at: Instant },
  settings: EffectSettings,
): WriteImpact {
  const none = { fromAddr: null, toAddr: null, operationNo: null, amount: null, feeAmount: null };
  const times = { sentAt: at, effectiveAt: null, recordedAt: at };
  const write = { ...none, ...fields, ...times, kind };
  const own = new Set(ownWalletsOf(settings).map(addressKey));
  const wallets = walletEffectsOf(write, settings);
  const users = new Map([...wallets].filter(([key]) => !own.has(key)));
  return {
    scope: { effects: users, conflictKey: conflictKeyOf(kind, fields) },
    ...recordedEffectsOf(write, settings),
  };
}

/** See `ConflictScope`. */
function conflictKeyOf(kind: Kind, fields: WriteFields): string | undefined {
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
