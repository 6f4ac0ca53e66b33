/**
 * The chance that an outside change of exactly its amount, not the unknown operation, explains a
 * wallet: the rate of such changes, from the drifts of all wallets, times the bracket.
 */
import type { Tx } from '../../db/connect.ts';
import { sumOf, wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listObservations } from '../../observer/observer.ts';
import { accountOfWallet, effectOn, type Operation } from '../../operations/operations.ts';
import type { Deps } from '../deps.ts';
import { quiescentAt } from '../resolution.ts';
import { readBaseline } from '../wallets/expected.ts';
import { expectationOf } from '../wallets/rule.ts';
import { countLikeDrifts, findWallet, type Wallet } from '../wallets/store.ts';
import { bracketMsOf, stepOf, type UnknownEffect, type WalletObservation } from './bracket.ts';
import { chanceOfCoincidence, likeAmounts, type WalletEvidence } from './rule.ts';

interface Claim {
  operation: Operation;
  outcome: 'executed' | 'not_executed';
}

/**
 * The chance that equal outside changes explain all of these wallets.
 * @param claim `first`: when the outcome was first observed. Where observations give no bracket, it
 * extends from the last quiet observation, or the send if that is earlier, to `first`.
 */
export async function coincidence(
  tx: Tx,
  deps: Deps,
  sides: readonly WalletEvidence[],
  claim: Claim & { first: Instant; now: Instant },
): Promise<number> {
  const { operation, first, now } = claim;
  const sentAt = operation.sentAt ?? operation.recordedAt;
  let chance = 1;
  for (const { key, possible } of sides) {
    const wallet = await findWallet(tx, key);
    if (!wallet?.openedAt) continue;
    const bracketMs =
      (await bracketBetweenPolls(tx, deps, wallet, claim)) ??
      first - Math.min(sentAt, wallet.quietAt ?? sentAt);
    const period = { key, openedAt: wallet.openedAt, now };
    const sizes = likeAmounts(operation.id, possible);
    chance = Math.min(chance, await chanceIn(tx, period, sizes, bracketMs));
  }
  return chance;
}

const OBSERVATIONS_MAX = 200;
const OBSERVATIONS_BEFORE_MAX = 8;

async function bracketBetweenPolls(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  { operation, outcome }: Claim,
): Promise<number | undefined> {
  const observations = await walletObservations(tx, deps, wallet, operation);
  return bracketMsOf(outcome, observations, unknownEffectOf(deps, wallet, operation));
}

/** An unknown operation that a wallet shows as a step of its balance. */
export interface StepShown {
  /** The observations before and after the step, and the newest one. */
  observations: WalletObservation[];
  /** The chance of an equal outside change between the same two observations. */
  chance: number;
}

/**
 * The step by which a wallet that was also changed elsewhere shows the effect of an unknown
 * operation; undefined without one, or when other operations were possible with it.
 */
export async function stepShown(
  tx: Tx,
  deps: Deps,
  key: string,
  { operation, now }: { operation: Operation; now: Instant },
): Promise<StepShown | undefined> {
  const wallet = await findWallet(tx, key);
  if (!wallet?.openedAt) return undefined;
  const observations = await walletObservations(tx, deps, wallet, operation);
  const unknown = unknownEffectOf(deps, wallet, operation);
  const step = stepOf(observations, unknown);
  const newest = observations.at(-1);
  if (!step || !newest) return undefined;
  const size = unknown.effect < 0n ? -unknown.effect : unknown.effect;
  const period = { key, openedAt: wallet.openedAt, now };
  const chance = await chanceIn(tx, period, [size], step.bracketMs);
  return { observations: [step.before, step.after, newest], chance };
}

/** The chance of an outside change of one of these sizes within the bracket. */
async function chanceIn(
  tx: Tx,
  { key, openedAt, now }: { key: string; openedAt: Instant; now: Instant },
  sizes: readonly bigint[] | undefined,
  bracketMs: number,
): Promise<number> {
  const history = await countLikeDrifts(tx, key, sizes, now);
  const own = { changes: history.own, observedMs: now - openedAt };
  const pool = { changes: history.pool - history.own, observedMs: history.observedMs };
  return chanceOfCoincidence(own, pool, bracketMs);
}

function unknownEffectOf(deps: Deps, { addr }: Wallet, operation: Operation): UnknownEffect {
  return {
    effect: effectOn(operation, accountOfWallet(addr), deps.effectSettings),
    sentAt: operation.sentAt ?? operation.recordedAt,
    quiescentAt: quiescentAt(operation, deps),
    readLagMs: deps.settings.readLagMs,
  };
}

/** The observations of a wallet around a send, oldest first. */
async function walletObservations(
  tx: Tx,
  { effectSettings, settings }: Deps,
  wallet: Wallet,
  operation: Operation,
): Promise<WalletObservation[]> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const newest = (await listObservations(tx, `wallet:${wallet.key}`, OBSERVATIONS_MAX)).filter(
    ({ result, startedAt: at }) => result === 'seen' && at <= (wallet.observedAt ?? at),
  );
  const after = newest.filter(({ endedAt }) => endedAt > sentAt).length;
  const observations = newest.slice(0, after + OBSERVATIONS_BEFORE_MAX).reverse();
  const since = (observations[0]?.startedAt ?? sentAt) - settings.readLagMs;
  const { baseline, drifts } = await readBaseline(tx, wallet.addr, effectSettings, { since });
  return observations.map(({ id: observationId, startedAt, endedAt, record }) => {
    const balance = wholeOf((record as Record<string, unknown> | null)?.balance);
    const observed = { balance: balance ?? 0n, startedAt, endedAt };
    // Drifts suspected later were not expected yet.
    const drift = sumOf(drifts.filter((d) => d.suspectedAt <= endedAt).map((d) => d.amount));
    const expected = expectationOf(observed, { ...baseline, drift }, settings.readLagMs);
    const alone = expected.possible.every(({ operation: { id } }) => id === operation.id);
    return {
      ...{ observationId, startedAt, endedAt, residual: observed.balance - expected.base },
      unambiguous: balance !== undefined && expected.complete && alone,
    };
  });
}
