/**
 * Importing a history gives the same balances as recording it live: split into any parts, imported
 * in any order, and whenever the wallets were first observed.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { accountOfWallet } from '../../../src/operations/operations.ts';
import { aGive, aTransfer } from '../../api/writes.ts';
import { balancesOf } from '../../harness/books.ts';
import { useImports } from './rig.ts';

const rig = useImports();
const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const HOURS = 12;
const PARTS = 2;
const BALANCE = 1_000n;
let wallets = 1_000;

const write = fc.record({
  hour: fc.integer({ min: 0, max: HOURS - 1 }),
  from: fc.option(fc.nat(1)),
  amount: fc.integer({ min: 1, max: 20 }),
  fee: fc.nat(2),
  part: fc.nat(PARTS - 1),
});
type Write = typeof write extends fc.Arbitrary<infer W> ? W : never;

const aPair = () => [wallets++, wallets++].map((n) => `0x${String(n).padStart(40, '0')}`);

/** The imported line of a write; without `from` it is a give to the first wallet of the pair. */
function reportOf({ hour, from, amount, fee }: Write, pair: string[]) {
  const common = {
    amount: String(amount),
    occurred_at: new Date(START + hour * HOUR).toISOString(),
  };
  if (from === null) return aGive({ ...common, to_addr: pair[0] });
  const parties = { from_addr: pair[from], to_addr: pair[1 - from] };
  return aTransfer({ ...common, ...parties, fee_amount: String(fee) });
}

/** The balances of the accounts at the end of each hour, and now. */
async function balancesOfAll(accounts: string[]) {
  await rig.post();
  const { db } = rig.api;
  const hours: Map<string, bigint | null>[] = [];
  for (let hour = 0; hour <= HOURS; hour++) {
    const at = new Date(START + hour * HOUR + 1).toISOString();
    const rows = await db.sql<{ account: string; balance: bigint | null }[]>`
      select account, balance from finance_v1.balances_as_of(${at}, null)
      where account = any(${accounts}::text[])`;
    hours.push(new Map(rows.map(({ account, balance }) => [account, balance])));
  }
  return { hours, final: await balancesOf(db, accounts) };
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

const history = fc.record({
  writes: fc.array(write, { minLength: 2, maxLength: 8 }),
  observedHour: fc.integer({ min: 0, max: HOURS }),
});

it('Any history in any parts and order has the balances of the live one', async () => {
  const histories = fc.array(history, { minLength: 6, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(histories, async (drawn) => {
      const all = drawn.map((one) => ({ ...one, live: aPair(), imported: aPair() }));
      for (const { writes, observedHour, live, imported } of all) {
        for (const addr of live) await rig.open(addr, BALANCE, START - HOUR);
        const shown = changesUntil(writes, observedHour);
        for (const [n, addr] of imported.entries())
          await rig.open(addr, BALANCE + (shown[n] ?? 0n), START + observedHour * HOUR);
      }
      await rig.post();
      const inTime = all
        .flatMap(({ writes, live }) => writes.map((one) => ({ ...one, live })))
        .toSorted((a, b) => a.hour - b.hour);
      const body = inTime.map((one) => reportOf(one, one.live));
      const reported = await rig.api.call('POST', '/api/operations', { body });
      expect(reported.body).toMatchObject({ recorded: body.length, refused: 0 });
      await rig.post();
      for (let part = 0; part < PARTS; part++) {
        const lines = all.flatMap(({ writes, imported }) =>
          writes.filter((one) => one.part === part).map((one) => reportOf(one, imported)),
        );
        await rig.write('part.ndjson', lines);
        const { code, out, err } = await rig.run('part.ndjson');
        expect({ code, err }, out).toEqual({ code: 0, err: '' });
        await rig.post();
      }
      const accounts = all.flatMap(({ live, imported }) => [...live, ...imported]);
      const { hours, final } = await balancesOfAll(accounts.map(accountOfWallet));
      for (const { writes, observedHour, live, imported } of all) {
        const since = Math.min(observedHour, ...writes.map(({ hour }) => hour));
        for (const [n, addr] of imported.entries()) {
          const [own, other] = [addr, live[n] ?? ''].map(accountOfWallet) as [string, string];
          expect(final.get(own)?.balance).toBe(final.get(other)?.balance);
          for (const [hour, balances] of hours.entries()) {
            const balance = balances.get(own) ?? null;
            if (hour >= since && balance !== null) expect(balance).toBe(balances.get(other));
          }
          expect(hours.at(-1)?.get(own)).toBe(hours.at(-1)?.get(other));
        }
      }
    }),
    { numRuns: 2, endOnFailure: true },
  );
});
