/**
 * The effects of token writes on accounts: who pays, who receives, and where the fee goes. The rows
 * of `operation_effects` are made here; every other stage reads those rows. Pure.
 */
import { addressKey, isAddress } from '../../kernel/addresses.ts';
import { sumOf } from '../../kernel/amounts.ts';
import { unreachable } from '../../kernel/errors.ts';
import type { Kind, WriteFields } from '../operation.ts';
import { type FeeMode, type FeeRules, type FeeTimes, feeInstantOf, feeModeAt } from './fee-rule.ts';

/** How fees are paid, and the wallets of operators, fees and collection. */
export interface EffectSettings extends FeeRules {
  /** Wallet address by operator number (decimal text); more may be mapped at any time. */
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
> &
  FeeTimes;

/** Why a write cannot be posted under the rule `deducted`, but under the other one. */
export const FEE_EXCEEDS = 'the fee exceeds the amount it is deducted from';

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
  return linesOf(write, settings).filter(({ amount }) => amount !== 0n);
}

/** One line per account, zeros included; all lines of a write that would move nothing then. */
function linesOf(write: EffectInput, settings: EffectSettings): Effect[] {
  const hasFee = feeModeOf(write, settings) !== null;
  const effects = allEffects(write, settings).filter(({ amount }) => hasFee || amount !== 0n);
  const merged = new Map<string, Effect>();
  for (const { account, amount } of effects) {
    const key = accountKey(account);
    const sum = merged.get(key) ?? { account, amount: 0n };
    merged.set(key, { account: sum.account, amount: sum.amount + amount });
  }
  const [from, , fees] = effects.map(({ account }) => accountKey(account));
  // Under one of the rules nothing else would be left of it.
  const isVoid = from !== undefined && from === fees && write.amount === write.feeAmount;
  return merged.size === 1 || isVoid ? effects : [...merged.values()];
}

/** What is stored with a write: its effects, and the rule by which they were computed. */
export interface RecordedEffects {
  effects: Effect[];
  /** Null if no rule changes them: the write has no fee. */
  feeMode: FeeMode | null;
}

/**
 * What is stored with a write. One with a fee has the same lines under both fee rules, zeros
 * included, so that another rule changes only amounts; a rule under which it cannot be posted makes
 * all of them zero.
 */
export function recordedEffectsOf(write: EffectInput, settings: EffectSettings): RecordedEffects {
  const feeMode = feeModeOf(write, settings);
  if (feeMode === null) return { effects: effectsOrNone(write, settings), feeMode };
  return { effects: linesUnder(write, settings, feeMode), feeMode };
}

/** The rule that a write falls under; null for a write without a fee. */
export function feeModeOf(write: EffectInput, settings: EffectSettings): FeeMode | null {
  const mayHave = write.kind === 'receive_from' || write.kind === 'transfer';
  const hasFee = mayHave && write.feeAmount !== null && write.feeAmount > 0n;
  return hasFee ? feeModeAt(settings, feeInstantOf(write)) : null;
}

function linesUnder(write: EffectInput, settings: EffectSettings, feeMode: FeeMode): Effect[] {
  const under = (mode: FeeMode) =>
    orNone(() => linesOf(write, { ...settings, feeMode: mode, feeChanges: [] }));
  const lines = under(feeMode);
  return lines.length > 0 ? lines : under('on_top').map((line) => ({ ...line, amount: 0n }));
}

/**
 * What is stored with a write once its rule is another one. The accounts stay as they are recorded,
 * also if the settings name others by now; undefined if they are not those of the write.
 * @param stored its lines, in their order
 */
export function effectsUnder(
  write: EffectInput,
  stored: readonly Effect[],
  { from, to, settings }: { from: FeeMode; to: FeeMode; settings: EffectSettings },
): Effect[] | undefined {
  if (stored.length === 0) return [];
  const names = stored.map(({ account }) => account);
  const others = namedAlike(names, 'collection').flatMap((collection) =>
    namedAlike(names, 'fees').map(({ feesAddr }) => ({ ...collection, feesAddr })),
  );
  const before = [settings, ...others].find((one) => isEqual(linesUnder(write, one, from), stored));
  return before && linesUnder(write, before, to);
}

const NO_WALLETS: EffectSettings = { feeMode: 'on_top', operators: new Map() };

/** Settings under which an account of our own is one of these, the last one first. */
function namedAlike(names: readonly string[], own: 'collection' | 'fees'): EffectSettings[] {
  const member = own === 'fees' ? 'feesAddr' : 'collectionAddr';
  return names.toReversed().flatMap((name) => {
    if (name === own) return [NO_WALLETS];
    if (!name.startsWith('wallet:')) return [];
    return [{ ...NO_WALLETS, [member]: name.slice('wallet:'.length) }];
  });
}

function isEqual(some: readonly Effect[], others: readonly Effect[]): boolean {
  const keys = (effects: readonly Effect[]) =>
    effects.map(({ account, amount }) => `${accountKey(account)} ${amount}`).join();
  return keys(some) === keys(others);
}

/** See `effectsOf`; empty when the write cannot be posted. */
export function effectsOrNone(write: EffectInput, settings: EffectSettings): Effect[] {
  return orNone(() => effectsOf(write, settings));
}

function orNone(effects: () => Effect[]): Effect[] {
  try {
    return effects();
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
  const feeMode = feeModeAt(settings, feeInstantOf(write));
  const fee = feeOf(write, feeMode, amount);
  const paid = feeMode === 'on_top' ? amount + fee : amount;
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

function feeOf({ kind, feeAmount }: EffectInput, feeMode: FeeMode, amount: bigint): bigint {
  const fee = feeAmount ?? 0n;
  if (fee < 0n) throw new Unpostable('the fee is negative');
  if (kind === 'give' && fee !== 0n) throw new Unpostable('a give has no fee');
  if (feeMode === 'deducted' && fee > amount) throw new Unpostable(FEE_EXCEEDS);
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
