/**
 * What the books say of one wallet, as a look needs it: read together, in the caller's snapshot.
 * Which accounts share a wallet (an operator, fees or collection with an address) is a setting.
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { balancesOf, isHeldByOpening, openingsOf, postingRequestOf } from '../../ledger/ledger.ts';
import {
  accountOfWallet,
  type EffectSettings,
  effectOn,
  listTouching,
  type Touching,
} from '../../operations/operations.ts';
import type { Standing } from './rule.ts';
import { type Drift, listOpenDrifts } from './store.ts';

/** More writes than that on one wallet are not read; the rule calls it `too_many_open`. */
const PARTS_MAX = 2_000;

/**
 * The wallet's standing and its open drifts.
 * @param given `since`: writes that ended before it are left out; `opensAt`: the start of the look
 * that an opening will rest on, for a wallet that has none
 */
export async function readStanding(
  tx: Tx,
  addr: string,
  books: EffectSettings,
  given: { since: Instant; opensAt?: Instant },
): Promise<{ standing: Standing; drifts: Drift[] }> {
  const account = accountOfWallet(addr);
  const { balance, version } = (await balancesOf(tx, [account])).get(account) ?? NO_BALANCE;
  const wanted = await postingRequestOf(tx, account);
  const drifts = await listOpenDrifts(tx, addressKey(addr));
  const operations = await listTouching(tx, touchingOf(addr, books), given.since, PARTS_MAX + 1);
  const opening = [...(await openingsOf(tx, [account])).values()][0];
  const before = opening?.seenAt ?? given.opensAt ?? Number.NEGATIVE_INFINITY;
  const parts = operations.map((operation) => ({
    operation,
    // What posts together with the equal correction of the opening changes nothing here.
    effect: isHeldByOpening(operation, before) ? 0n : effectOn(operation, account, books),
  }));
  const drift = sumOf(drifts.map((open) => open.amount));
  const complete = parts.length <= PARTS_MAX;
  const standing = { ledger: balance + wanted, version, drift, parts, complete };
  return { standing, drifts };
}

const NO_BALANCE = { balance: 0n, version: 0n };

/** Which writes touch a wallet: those that name it, and those of books that live in it. */
export function touchingOf(addr: string, books: EffectSettings): Touching {
  const key = addressKey(addr);
  const lives = (at: string | undefined) => at !== undefined && addressKey(at) === key;
  const operationNos = [...books.operators].flatMap(([no, at]) => (lives(at) ? [BigInt(no)] : []));
  return {
    keys: [key],
    operationNos,
    collection: lives(books.collectionAddr),
    fees: lives(books.feesAddr),
  };
}
