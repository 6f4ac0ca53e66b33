/**
 * Write holds. Under steady traffic every observation meets possible operations, so that none is
 * quiet. After several of these, new writes on the wallet wait for one read lag and one poll. The
 * next observation releases them; a hold also ends by itself.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { StoredObservation } from '../../observer/observer.ts';
import { type Operation, UNRESOLVED_STATES } from '../../operations/operations.ts';
import type { Deps } from '../deps.ts';
import type { Wallet } from './store.ts';

/** A hold is placed after every so many observations in a row that were not quiet. */
export const HOLD_AFTER_OBSERVATIONS = 8;
/** Allowance for the poll, from its due time to its evaluation. */
const POLL_MS = 2_000;
/** An older observation shows that polls are late; a hold would be useless. */
const FRESH_MS = 5_000;

/** Holds new writes on the wallet if it is time to, and answers when to poll it then. */
export async function holdForPoll(
  tx: Tx,
  { operations, settings, availableSince }: Deps,
  wallet: Wallet,
  input: { possible: readonly Operation[]; observation: StoredObservation; now: Instant },
): Promise<Instant | undefined> {
  const { possible, observation, now } = input;
  const observations = wallet.unquietObservations;
  if (observations === 0 || observations % HOLD_AFTER_OBSERVATIONS !== 0) return undefined;
  if (now - observation.endedAt > FRESH_MS || availableSince > now) return undefined;
  if (possible.every(({ state }) => UNRESOLVED_STATES.has(state))) return undefined;
  await operations.hold(tx, wallet.key, now + settings.readLagMs + POLL_MS);
  return now + settings.readLagMs + 1;
}

/** Releases the hold that the observation before this one may have placed. */
export async function release(
  tx: Tx,
  { operations }: Deps,
  wallet: Wallet | undefined,
): Promise<void> {
  const observations = wallet?.unquietObservations ?? 0;
  if (wallet && observations > 0 && observations % HOLD_AFTER_OBSERVATIONS === 0)
    await operations.unhold(tx, wallet.key);
}
