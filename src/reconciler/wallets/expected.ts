/**
 * Reads what the observations of one wallet are compared with, in the caller's snapshot. Settings
 * say which accounts share a wallet (an operator, fees or collection with an address).
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import {
  balancesOf,
  isOffsetByOpening,
  isPosted,
  listDueOn,
  openingsOf,
  sumPostingRequests,
  timesPosted,
} from '../../ledger/ledger.ts';
import {
  accountOfWallet,
  type EffectSettings,
  effectOn,
  listTouching,
  type Touching,
} from '../../operations/operations.ts';
import type { Baseline } from './rule.ts';
import { type Drift, listOpenDrifts } from './store.ts';

/** With more operations on one wallet its observations are inconclusive: `too_many_open`. */
const OPERATIONS_MAX = 2_000;

/**
 * @param range `since`: operations that ended before it are left out; `opensAt`: the start of the
 * observation that the opening will rest on, for a wallet without one
 */
export async function readBaseline(
  tx: Tx,
  addr: string,
  effectSettings: EffectSettings,
  range: { since: Instant; opensAt?: Instant },
): Promise<{ baseline: Baseline; drifts: Drift[] }> {
  const account = accountOfWallet(addr);
  const { balance, version } = (await balancesOf(tx, [account])).get(account) ?? NO_BALANCE;
  const requested = await sumPostingRequests(tx, account);
  const drifts = await listOpenDrifts(tx, addressKey(addr));
  const operations = await listTouching(tx, touchingOf(addr, effectSettings), {
    since: range.since,
    due: await listDueOn(tx, account),
    limit: OPERATIONS_MAX + 1,
  });
  const posted = await timesPosted(
    tx,
    operations.map(({ id }) => id),
  );
  const opening = [...(await openingsOf(tx, [account])).values()][0];
  const before = opening?.seenAt ?? range.opensAt ?? Number.NEGATIVE_INFINITY;
  const effects = operations.map((operation) => ({
    operation,
    posted: isPosted(posted.get(operation.id) ?? 0),
    // It posts together with an equal correction of the opening.
    effect: isOffsetByOpening(operation, posted.get(operation.id) ?? 0, before)
      ? 0n
      : effectOn(operation, account, effectSettings),
  }));
  const drift = sumOf(drifts.map((open) => open.amount));
  const complete = effects.length <= OPERATIONS_MAX;
  const baseline = { ledger: balance + requested, version, drift, effects, complete };
  return { baseline, drifts };
}

const NO_BALANCE = { balance: 0n, version: 0n };

/** Selects the operations of a wallet: those that name it, and those of accounts kept in it. */
export function touchingOf(addr: string, effectSettings: EffectSettings): Touching {
  const key = addressKey(addr);
  const lives = (at: string | undefined) => at !== undefined && addressKey(at) === key;
  const operationNos = [...effectSettings.operators].flatMap(([no, at]) =>
    lives(at) ? [BigInt(no)] : [],
  );
  return {
    keys: [key],
    operationNos,
    collection: lives(effectSettings.collectionAddr),
    fees: lives(effectSettings.feesAddr),
  };
}
