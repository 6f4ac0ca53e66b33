/**
 * How likely it is that the one wallet which speaks of a lost write was changed by somebody else by
 * just its amount. The looks of the wallet bound when that must have been; what the wallet and all
 * others went through says how often it happens.
 */
import type { Tx } from '../../db/connect.ts';
import { sumOf, wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listObservations } from '../../observer/observer.ts';
import { accountOfWallet, effectOn, type Operation } from '../../operations/operations.ts';
import type { Context } from '../deps.ts';
import { quietAfter } from '../resolution.ts';
import { readStanding } from '../wallets/expected.ts';
import { expectationOf } from '../wallets/rule.ts';
import { countLikeDrifts, findWallet, type Wallet } from '../wallets/store.ts';
import { type Asked, type Sighting, stepOf, windowMsOf } from './bracket.ts';
import { chanceOfCoincidence, likeAmounts, type WalletEvidence } from './rule.ts';

interface Claim {
  operation: Operation;
  outcome: 'executed' | 'not_executed';
}

/**
 * The chance that an equal outside change is what the wallets show.
 * @param claim `first`: when it was first seen; without looks that say better, the change may have
 * come at any time since the balance was last explained, so also before the write was sent
 */
export async function coincidence(
  tx: Tx,
  context: Context,
  sides: readonly WalletEvidence[],
  claim: Claim & { first: Instant; now: Instant },
): Promise<number> {
  const { operation, first, now } = claim;
  const sentAt = operation.sentAt ?? operation.recordedAt;
  let chance = 1;
  for (const { key, optional } of sides) {
    const wallet = await findWallet(tx, key);
    if (!wallet?.openedAt) continue;
    const windowMs =
      (await windowBetweenPolls(tx, context, wallet, claim)) ??
      first - Math.min(sentAt, wallet.quietAt ?? sentAt);
    const life = { key, openedAt: wallet.openedAt, now };
    const sizes = likeAmounts(operation.id, optional);
    chance = Math.min(chance, await chanceIn(tx, life, sizes, windowMs));
  }
  return chance;
}

/** Looks that are read back at most, and those from before the write that are enough. */
const LOOKS_MAX = 200;
const LOOKS_BEFORE = 8;

/** What the looks at a wallet around a write bound the time of an outside change to. */
async function windowBetweenPolls(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  { operation, outcome }: Claim,
): Promise<number | undefined> {
  const observations = await sightingsOf(tx, context, wallet, operation);
  return windowMsOf(outcome, observations, askedOf(context, wallet, operation));
}

/** A lost write that a wallet showed as a step of its balance. */
export interface StepShown {
  /** The looks before and after the step, and the newest one, which still shows it. */
  observations: Sighting[];
  /** The chance that somebody else changed the balance by as much between the same two looks. */
  chance: number;
}

/**
 * Whether a wallet that nothing explains, because others changed it, yet moved once by just the
 * effect of a lost write. Undefined when it did not, or when other writes were under way with it.
 */
export async function stepShown(
  tx: Tx,
  context: Context,
  key: string,
  { operation, now }: { operation: Operation; now: Instant },
): Promise<StepShown | undefined> {
  const wallet = await findWallet(tx, key);
  if (!wallet?.openedAt) return undefined;
  const observations = await sightingsOf(tx, context, wallet, operation);
  const asked = askedOf(context, wallet, operation);
  const step = stepOf(observations, asked);
  const newest = observations.at(-1);
  if (!step || !newest) return undefined;
  const size = asked.effect < 0n ? -asked.effect : asked.effect;
  const life = { key, openedAt: wallet.openedAt, now };
  const chance = await chanceIn(tx, life, [size], step.windowMs);
  return { observations: [step.before, step.after, newest], chance };
}

/** The chance of an outside change of one of these sizes in a window of this wallet. */
async function chanceIn(
  tx: Tx,
  { key, openedAt, now }: { key: string; openedAt: Instant; now: Instant },
  sizes: readonly bigint[] | undefined,
  windowMs: number,
): Promise<number> {
  const history = await countLikeDrifts(tx, key, sizes, now);
  const own = { changes: history.own, observedMs: now - openedAt };
  const pool = { changes: history.pool - history.own, observedMs: history.observedMs };
  return chanceOfCoincidence(own, pool, windowMs);
}

function askedOf(context: Context, { addr }: Wallet, operation: Operation): Asked {
  return {
    effect: effectOn(operation, accountOfWallet(addr), context.books),
    sentAt: operation.sentAt ?? operation.recordedAt,
    quietAt: quietAfter(operation, context),
    readLagMs: context.settings.readLagMs,
  };
}

/** The looks at a wallet around a write, oldest first, held against the books of today. */
async function sightingsOf(
  tx: Tx,
  { books, settings }: Context,
  wallet: Wallet,
  operation: Operation,
): Promise<Sighting[]> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const newest = (await listObservations(tx, `wallet:${wallet.key}`, LOOKS_MAX)).filter(
    ({ result, startedAt: at }) => result === 'seen' && at <= (wallet.observedAt ?? at),
  );
  const after = newest.filter(({ endedAt }) => endedAt > sentAt).length;
  const observations = newest.slice(0, after + LOOKS_BEFORE).reverse();
  const since = (observations[0]?.startedAt ?? sentAt) - settings.readLagMs;
  const { standing, drifts } = await readStanding(tx, wallet.addr, books, { since });
  return observations.map(({ id: observationId, startedAt, endedAt, record }) => {
    const balance = wholeOf((record as Record<string, unknown> | null)?.balance);
    const sight = { balance: balance ?? 0n, startedAt, endedAt };
    // A drift that was not seen yet is no part of what was to be expected then.
    const drift = sumOf(drifts.filter((d) => d.suspectedAt <= endedAt).map((d) => d.amount));
    const expected = expectationOf(sight, { ...standing, drift }, settings.readLagMs);
    const alone = expected.optional.every((part) => part.operation.id === operation.id);
    return {
      ...{ observationId, startedAt, endedAt, residual: sight.balance - expected.base },
      plain: balance !== undefined && expected.complete && alone,
    };
  });
}
