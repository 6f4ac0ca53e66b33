/**
 * Holding new writes on a wallet for one look: under steady traffic every look meets writes that it
 * may or may not show, so that nothing is ever confirmed. After several such looks new writes wait
 * for as long as reads may lag and one look takes; the next look releases them, and so does the
 * time that was set, whatever becomes of the looker.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { StoredObservation } from '../../observer/observer.ts';
import type { Operation } from '../../operations/operations.ts';
import type { Context } from '../deps.ts';
import type { Wallet } from './store.ts';

/** Unclean looks in a row before writes wait, and again before they wait once more. */
export const HOLD_AFTER_LOOKS = 8;
/** What a held look may take beside the read lag, from its being due to its judgement. */
const LOOK_MS = 2_000;
/** An older look tells that nobody looks in time: then nobody is held up for it. */
const FRESH_MS = 5_000;

/**
 * Holds new writes on the wallet if its turn has come, and answers when to look then.
 * @param optional the writes that the look may or may not show; lost ones are none that wait
 */
export async function holdForPoll(
  tx: Tx,
  { operations, settings, availableSince }: Context,
  wallet: Wallet,
  given: { optional: readonly Operation[]; observation: StoredObservation; now: Instant },
): Promise<Instant | undefined> {
  const { optional, observation, now } = given;
  const observations = wallet.unquietObservations;
  if (observations === 0 || observations % HOLD_AFTER_LOOKS !== 0) return undefined;
  if (now - observation.endedAt > FRESH_MS || availableSince > now) return undefined;
  if (!optional.some(({ state }) => state !== 'unknown' && state !== 'undecided')) return undefined;
  await operations.hold(tx, wallet.key, now + settings.readLagMs + LOOK_MS);
  return now + settings.readLagMs + 1;
}

/** Releases what the look before this one may have held. */
export async function release(
  tx: Tx,
  { operations }: Context,
  wallet: Wallet | undefined,
): Promise<void> {
  const observations = wallet?.unquietObservations ?? 0;
  if (wallet && observations > 0 && observations % HOLD_AFTER_LOOKS === 0)
    await operations.unhold(tx, wallet.key);
}
