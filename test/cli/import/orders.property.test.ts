/**
 * Importing a history gives the same balances as recording it live: split into any parts, imported
 * in any order, and whenever the wallets were first observed.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { balancesOf } from '../../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../../src/operations/operations.ts';
import { aGive, aTransfer } from '../../api/writes.ts';
import { useImports } from './rig.ts';

const rig = useImports();
const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const HOURS = 12;
const BALANCE = 1_000n;
let wallets = 1_000;

const write = fc.record({
  hour: fc.integer({ min: 0, max: HOURS - 1 }),
  from: fc.option(fc.nat(1)),
  amount: fc.integer({ min: 1, max: 20 }),
  fee: fc.nat(2),
  part: fc.nat(1),
});
type Write = typeof write extends fc.Arbitrary<infer W> ? W : never;

const aPair = () => [wallets++, wallets++].map((n) => `0x${String(n).padStart(40, '0')}`);

/** The report of a write between these wallets; a write from nobody is a give to the first. */
function reportOf({ hour, from, amount, fee }: Write, pair: string[]) {
  const common = {
    amount: String(amount),
    occurred_at: new Date(START + hour * HOUR).toISOString(),
  };
  if (from === null) return aGive({ ...common, to_addr: pair[0] });
  const parties = { from_addr: pair[from], to_addr: pair[1 - from] };
  return aTransfer({ ...common, ...parties, fee_amount: String(fee) });
}

/** What each wallet has at the end, and at each hour from the first write on. */
async function balancesAt(pair: string[], since: number) {
  await rig.post();
  const { db } = rig.api;
  const accounts = pair.map(accountOfWallet);
  const final = await balancesOf(db, accounts);
  const hours = Array.from({ length: HOURS + 1 - since }, (_, n) => since + n);
  const asOf = await Promise.all(
    hours.map(async (hour) => {
      const at = new Date(START + hour * HOUR + 1).toISOString();
      const rows = await db.sql<{ account: string; balance: bigint }[]>`
        select account, balance from finance_v1.balances_as_of(${at}, null)
        where account = any(${accounts}::text[])`;
      const found = new Map(rows.map(({ account, balance }) => [account, balance]));
      return accounts.map((account) => found.get(account) ?? null);
    }),
  );
  return { final: accounts.map((account) => final.get(account)?.balance), asOf };
}

/** Changes of both wallets until an hour. */
function changesUntil(writes: readonly Write[], hour: number): bigint[] {
  const changes = [0n, 0n];
  for (const { from, amount, fee } of writes.filter((one) => one.hour < hour)) {
    const [paid, got] = [BigInt(amount + fee), BigInt(amount)];
    if (from === null) changes[0] = (changes[0] ?? 0n) + got;
    else {
      changes[from] = (changes[from] ?? 0n) - paid;
      changes[1 - from] = (changes[1 - from] ?? 0n) + got;
    }
  }
  return changes;
}

it('Any history in any parts and order has the balances of the live one', async () => {
  const history = fc.array(write, { minLength: 2, maxLength: 8 });
  const observed = fc.integer({ min: 0, max: HOURS });
  await fc.assert(
    fc.asyncProperty(history, observed, fc.boolean(), async (writes, observedHour, swapped) => {
      const live = aPair();
      for (const addr of live) await rig.open(addr, BALANCE, START - HOUR);
      await rig.post();
      for (const one of writes.toSorted((a, b) => a.hour - b.hour)) {
        const body = reportOf(one, live);
        expect((await rig.api.call('POST', '/api/operations', { body })).status).toBe(201);
      }

      const imported = aPair();
      const shown = changesUntil(writes, observedHour);
      const openedAt = START + observedHour * HOUR;
      for (const [n, addr] of imported.entries())
        await rig.open(addr, BALANCE + (shown[n] ?? 0n), openedAt);
      await rig.post();
      const parts = [0, 1].map((part) => writes.filter((one) => one.part === part));
      for (const part of swapped ? parts.toReversed() : parts) {
        await rig.write(
          'part.ndjson',
          part.map((one) => reportOf(one, imported)),
        );
        const { code, out, err } = await rig.run('part.ndjson');
        expect({ code, err }, out).toEqual({ code: 0, err: '' });
        await rig.post();
      }
      const since = Math.min(observedHour, ...writes.map(({ hour }) => hour)) + 1;
      const expected = await balancesAt(live, since);
      const found = await balancesAt(imported, since);
      expect(found.final).toEqual(expected.final);
      for (const [n, balances] of found.asOf.entries())
        for (const [w, balance] of balances.entries())
          if (balance !== null) expect(balance).toBe(expected.asOf[n]?.[w]);
      expect(found.asOf.at(-1)).toEqual(expected.asOf.at(-1));
    }),
    { numRuns: 6 },
  );
});
