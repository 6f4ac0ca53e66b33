/**
 * The opening of a wallet: what its first quiet observation shows beyond executed operations. Until
 * then the wallet is `unopened`: shown, and never in drift.
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { openingId, requestPosting } from '../../ledger/ledger.ts';
import {
  listObservationsBefore,
  targetName,
  type UnprocessedObservation,
} from '../../observer/observer.ts';
import { accountOfWallet } from '../../operations/operations.ts';
import { expectedBalances, firstUnsettledAt } from './expected.ts';
import { walletRecordOf } from './rule.ts';
import type { Wallet } from './wallet.ts';

type Observation = Pick<UnprocessedObservation, 'startedAt' | 'endedAt' | 'record'>;

/**
 * Requests the opening from this observation or, if an operation is possible at it, from the last
 * one before the first operation: a newer observation may have replaced that one before it was
 * processed. Changes `wallet`; false if it stays unopened.
 */
export async function openWallet(
  tx: Tx,
  wallet: Wallet,
  { observation, readLagMs, now }: { observation: Observation; readLagMs: number; now: Instant },
): Promise<boolean> {
  if (await openAt(tx, wallet, { observation, readLagMs, now })) return true;
  const earlier = await lastBeforeOperations(tx, wallet);
  if (earlier && (await openAt(tx, wallet, { observation: earlier, readLagMs, now }))) return true;
  wallet.cause = 'operations are open on it';
  return false;
}

async function openAt(
  tx: Tx,
  wallet: Wallet,
  { observation, readLagMs, now }: { observation: Observation; readLagMs: number; now: Instant },
): Promise<boolean> {
  const { key, addr } = wallet;
  const { startedAt, endedAt } = observation;
  const observed = { key, startedAt, endedAt, opened: false };
  const expectations = await expectedBalances(tx, [observed], readLagMs);
  const { base, version, possibleCount } = must(expectations.get(key), 'expected balance');
  if (possibleCount > 0) return false;
  const first = await firstUnsettledAt(tx, key);
  await requestPosting(
    tx,
    {
      id: openingId(addr),
      kind: 'opening',
      account: accountOfWallet(addr),
      counter: 'opening',
      amount: walletRecordOf(observation).balance - base,
      effectiveAt: Math.min(startedAt, (first ?? startedAt + 1) - 1),
      effectiveBasis: 'observed',
      requestedBy: 'reconciler',
      reason: 'first observation',
      seen: { at: startedAt, version },
    },
    now,
  );
  Object.assign(wallet, { openedAt: now, consistentAt: startedAt, quietAt: startedAt });
  return true;
}

/** Series of observations that are searched. */
const SEARCHED_MAX = 10;

/** The last observation that ended before the first unsettled operation of the wallet. */
async function lastBeforeOperations(
  tx: Tx,
  { key, addr }: Wallet,
): Promise<Observation | undefined> {
  const first = await firstUnsettledAt(tx, key);
  if (first === undefined) return undefined;
  const series = await listObservationsBefore(tx, targetName({ kind: 'wallet', addr }), {
    before: { unchangedSince: first, id: '' },
    limit: SEARCHED_MAX,
  });
  const found = series.find(
    (one) =>
      one.result === 'seen' &&
      one.firstEndedAt < first &&
      addressKey(walletRecordOf(one).addr) === key,
  );
  return found && { ...found, startedAt: found.unchangedSince, endedAt: found.firstEndedAt };
}
