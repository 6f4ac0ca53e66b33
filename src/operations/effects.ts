/**
 * The effects of token writes on accounts: who pays, who receives, and where the fee goes. The rows
 * of `operation_effects` are made here; every other stage reads those rows. Pure.
 */
import { addressKey, isAddress } from '../kernel/addresses.ts';
import { sumOf } from '../kernel/amounts.ts';
import { unreachable } from '../kernel/errors.ts';
import type { Kind, WriteFields } from './operation.ts';

/** How fees are paid, and the wallets of operators, fees and collection. */
export interface EffectSettings {
  /** Whether a fee is paid on top of the amount or deducted from it. */
  feeMode: 'on_top' | 'deducted';
  /** Wallet address by operator number (decimal text). */
  operators: ReadonlyMap<string, string>;
  feesAddr?: string | undefined;
  collectionAddr?: string | undefined;
}

/** The account's balance changes by the amount. */
export interface Effect {
  account: string;
  amount: bigint;
}

/** The fields of a write that decide its effects. */
export type EffectInput = { kind: Kind } & Pick<
  Required<WriteFields>,
  'fromAddr' | 'toAddr' | 'operationNo' | 'amount' | 'feeAmount'
>;

/** A write that cannot be posted; the message is the reason. */
export class Unpostable extends Error {
  override readonly name = 'Unpostable';
}

/** The account of a wallet: `wallet:<addr>`. */
export function accountOfWallet(addr: string): string {
  return `wallet:${addr}`;
}

/** Equal for all spellings of an account name. */
export function accountKey(name: string): string {
  return addressKey(name);
}

/**
 * The effects of a token write, one per account and none of them zero; they sum to zero. A transfer
 * from a wallet to itself keeps both effects. Other kinds of write have none.
 * @throws Unpostable when a party or an amount is missing or impossible
 */
export function effectsOf(write: EffectInput, settings: EffectSettings): Effect[] {
  const effects = allEffects(write, settings);
  const merged = new Map<string, Effect>();
  for (const { account, amount } of effects) {
    const key = accountKey(account);
    const sum = merged.get(key) ?? { account, amount: 0n };
    merged.set(key, { account: sum.account, amount: sum.amount + amount });
  }
  const changing = [...merged.values()].filter(({ amount }) => amount !== 0n);
  return changing.length > 0 ? changing : effects.filter(({ amount }) => amount !== 0n);
}

/** See `effectsOf`; empty when the write cannot be posted. */
export function effectsOrNone(write: EffectInput, settings: EffectSettings): Effect[] {
  try {
    return effectsOf(write, settings);
  } catch (error) {
    if (error instanceof Unpostable) return [];
    throw error;
  }
}

/** The keys of the wallets that a write changes once executed; none if it cannot be posted. */
export function walletKeysOf(write: EffectInput, settings: EffectSettings): string[] {
  return [...walletEffectsOf(write, settings).keys()];
}

/** By how much a write changes each wallet once executed, by key; none if it cannot be posted. */
export function walletEffectsOf(write: EffectInput, settings: EffectSettings): Map<string, bigint> {
  const effects = new Map<string, bigint>();
  for (const { account, amount } of effectsOrNone(write, settings)) {
    if (!account.startsWith('wallet:')) continue;
    const key = addressKey(account.slice('wallet:'.length));
    effects.set(key, (effects.get(key) ?? 0n) + amount);
  }
  return effects;
}

/** The wallets of operators, fees and collection. */
export function ownWalletsOf({ operators, feesAddr, collectionAddr }: EffectSettings): string[] {
  return [...operators.values(), feesAddr, collectionAddr].filter((addr) => addr !== undefined);
}

/** By how much a write changes that account once executed; 0 for one that cannot be posted. */
export function effectOn(write: EffectInput, account: string, settings: EffectSettings): bigint {
  const own = effectsOrNone(write, settings).filter(
    (effect) => accountKey(effect.account) === accountKey(account),
  );
  return sumOf(own.map((effect) => effect.amount));
}

function allEffects(write: EffectInput, settings: EffectSettings): Effect[] {
  const { kind } = write;
  if (kind !== 'give' && kind !== 'receive_from' && kind !== 'transfer') return [];
  const amount = positive(write.amount);
  const fee = feeOf(write, settings, amount);
  const paid = settings.feeMode === 'on_top' ? amount + fee : amount;
  const received = paid - fee;
  const from = () => wallet(write.fromAddr, 'sender');
  const to = () => wallet(write.toAddr, 'receiver');
  switch (kind) {
    case 'give':
      return [
        { account: operatorAccount(write.operationNo, settings), amount: -amount },
        { account: to(), amount },
      ];
    case 'receive_from':
      return [
        { account: from(), amount: -paid },
        { account: configured(settings.collectionAddr, 'collection'), amount: received },
        { account: configured(settings.feesAddr, 'fees'), amount: fee },
      ];
    case 'transfer':
      return [
        { account: from(), amount: -paid },
        { account: to(), amount: received },
        { account: configured(settings.feesAddr, 'fees'), amount: fee },
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

function feeOf({ kind, feeAmount }: EffectInput, settings: EffectSettings, amount: bigint): bigint {
  const fee = feeAmount ?? 0n;
  if (fee < 0n) throw new Unpostable('the fee is negative');
  if (kind === 'give' && fee !== 0n) throw new Unpostable('a give has no fee');
  if (settings.feeMode === 'deducted' && fee > amount)
    throw new Unpostable('the fee exceeds the amount it is deducted from');
  return fee;
}

function wallet(addr: string | null, party: string): string {
  if (addr === null || !isAddress(addr)) throw new Unpostable(`the ${party} is not an address`);
  return accountOfWallet(addr);
}

function operatorAccount(no: bigint | null, settings: EffectSettings): string {
  if (no === null || no < 0n) throw new Unpostable('the operator is not known');
  return configured(settings.operators.get(no.toString()), `operator:${no}`);
}

function configured(addr: string | undefined, name: string): string {
  return addr === undefined ? name : accountOfWallet(addr);
}
