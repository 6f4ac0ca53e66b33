/**
 * Assesses a drift whose amount is exact: its probable cause with the proposal that fits it, and
 * its counterpart if one transfer made elsewhere between two wallets caused both.
 */
import type { Tx } from '../../db/connect.ts';
import { openingsOf } from '../../ledger/ledger.ts';
import {
  accountKey,
  accountOfWallet,
  effectOn,
  findOperations,
  otherFeeRules,
} from '../../operations/operations.ts';
import type { Cause } from '../../resources/drift.ts';
import type { Deps } from '../deps.ts';
import { listExecutedBetween } from '../wallets/expected-store.ts';
import { counterpartAmounts, type Facts, type Prepared, probableCause } from './cause.ts';
import {
  findKnownLater,
  listBooked,
  listLost,
  listPossibleCounterparts,
  usualFee,
} from './cause-store.ts';
import { type Drift, insertDriftAction, pairDrift } from './store.ts';

export interface Assessment {
  cause: Cause;
  prepared: Prepared | null;
  counterpart: string | null;
}

/** Until its amount is exact nothing is prepared. */
export const UNASSESSED: Assessment = {
  cause: 'made_elsewhere',
  prepared: null,
  counterpart: null,
};

type Assessed = Pick<Drift, 'id' | 'walletKey' | 'openedAt' | 'windowFrom' | 'windowTo'> & {
  amount: bigint;
};

export async function assess(tx: Tx, deps: Deps, drift: Assessed): Promise<Assessment> {
  const facts: Facts = {
    driftId: drift.id,
    amount: drift.amount,
    lost: await listLost(tx, drift),
    booked: await bookedBefore(tx, deps, drift),
    otherFeeRule: await otherFeeRule(tx, deps, drift),
    sinceOpening: await isSinceOpening(tx, drift),
  };
  const { cause, prepared } = probableCause(facts);
  const mayBePaired = cause === 'made_elsewhere' || cause === 'opening';
  const counterpart = mayBePaired ? await findCounterpart(tx, drift) : undefined;
  if (counterpart === undefined) return { cause, prepared, counterpart: null };
  await pairDrift(tx, counterpart, drift.id);
  const paired = { action: 'paired', at: drift.openedAt, by: 'reconciler' };
  await insertDriftAction(tx, { driftId: counterpart, ...paired, detail: { with: drift.id } });
  return { cause: 'made_elsewhere', prepared, counterpart };
}

/** A booked drift that this one takes back because its operation is known now. */
async function bookedBefore(
  tx: Tx,
  { settings }: Deps,
  { walletKey, amount }: Assessed,
): Promise<Facts['booked']> {
  for (const booked of await listBooked(tx, { walletKey, amount: -amount })) {
    const late = { ...booked, amount: -amount };
    const operationId = await findKnownLater(tx, late, settings.readLagMs);
    if (operationId !== undefined) return { driftId: booked.id, operationId };
  }
  return undefined;
}

/** How much more each operation of the window would have added under the other fee rule. */
async function otherFeeRule(
  tx: Tx,
  { effectSettings }: Deps,
  { walletKey, windowFrom, windowTo }: Assessed,
): Promise<bigint[]> {
  const ids = await listExecutedBetween(tx, walletKey, windowFrom ?? 0, windowTo);
  const operations = await findOperations(tx, ids);
  const account = accountOfWallet(walletKey);
  const other = { ...effectSettings, ...otherFeeRules(effectSettings) };
  return [...operations.values()].flatMap((operation) => {
    const more = effectOn(operation, account, other) - effectOn(operation, account, effectSettings);
    return more === 0n ? [] : [more];
  });
}

async function isSinceOpening(tx: Tx, { walletKey, windowFrom }: Assessed): Promise<boolean> {
  const account = accountOfWallet(walletKey);
  const opening = (await openingsOf(tx, [account])).get(accountKey(account));
  return opening !== undefined && (windowFrom ?? opening.seenAt) <= opening.seenAt;
}

/** The only drift that can be the other side of the same transfer. */
async function findCounterpart(tx: Tx, drift: Assessed): Promise<string | undefined> {
  const amounts = counterpartAmounts(drift.amount, await usualFee(tx));
  const [first, second] = await listPossibleCounterparts(tx, drift, amounts);
  return second === undefined ? first : undefined;
}
