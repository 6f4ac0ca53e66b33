/** The ledger agrees with a small model for random writes, and with several writers. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addressKey } from '../../src/kernel/addresses.ts';
import { type PostingRequest, requestPosting } from '../../src/ledger/ledger.ts';
import type { EffectSettings, Operation } from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import { createDatabase, useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { naiveEffects } from '../harness/naive-effects.ts';
import {
  addr,
  faultsOf,
  NO_FAULTS,
  openLedgerOfInserted,
  operation,
  putOperations,
  runDry,
  START,
  setState,
} from './fixture.ts';

const database = await useDatabase();

/** Settings whose accounts no other run uses. */
const settingsOf = (
  run: number,
  feeMode: EffectSettings['feeMode'],
  mapped: boolean,
): EffectSettings => ({
  feeMode,
  operators: new Map(mapped ? [[String(run), addr(`${run}x0`)]] : []),
  feesAddr: addr(`${run}x1`),
  collectionAddr: addr(`${run}x2`),
});

/** What each account must hold in the end. */
function model(
  operations: readonly Operation[],
  requests: readonly PostingRequest[],
  settings: EffectSettings,
) {
  const balances = new Map<string, bigint>();
  const add = (name: string, amount: bigint) =>
    balances.set(name, (balances.get(name) ?? 0n) + amount);
  for (const one of operations)
    if (one.state === 'accepted')
      for (const [name, amount] of naiveEffects(one, settings)) add(name, amount);
  for (const { account, counter, amount } of requests) {
    add(account.toLowerCase(), amount);
    add(counter, -amount);
  }
  return balances;
}

/** Random writes among five wallets in any spelling; fees never exceed amounts. */
const write = fc.record({
  kind: fc.constantFrom('give' as const, 'receive_from' as const, 'transfer' as const),
  from: fc.nat(4),
  to: fc.nat(4),
  lowerCase: fc.boolean(),
  amount: fc.oneof(fc.bigInt(1n, 50n), fc.bigInt(1n, 10n ** 60n)),
  fee: fc.bigInt(0n, 10n ** 60n),
  /** The states it passes, one after each round of posting. */
  states: fc.array(fc.constantFrom('accepted' as const, 'not_executed' as const), {
    minLength: 1,
    maxLength: 3,
  }),
});
const opening = fc.record({ account: fc.nat(4), amount: fc.bigInt(-(10n ** 60n), 10n ** 60n) });

it('Any writes in any batches give the balances of a small model and break no rule', async () => {
  let run = 100;
  const property = fc.asyncProperty(
    fc.array(write, { maxLength: 25 }),
    fc.array(opening, { maxLength: 5 }),
    fc.constantFrom('on_top' as const, 'deducted' as const),
    fc.boolean(),
    fc.integer({ min: 1, max: 30 }),
    async (writes, openings, feeMode, mapped, batchMax) => {
      run += 1;
      const settings = settingsOf(run, feeMode, mapped);
      const wallet = (n: number) => addr(`${run}w${n}`);
      const operations = writes.map(({ kind, from, to, lowerCase, amount, fee, states }, n) => ({
        id: `op_${run}_${n}`,
        kind,
        state: states[0],
        recordedAt: START + n,
        operationNo: BigInt(run),
        fromAddr: wallet(from),
        toAddr: lowerCase ? addressKey(wallet(to)) : wallet(to),
        amount,
        feeAmount: kind === 'give' ? 0n : fee % (amount + 1n),
      }));
      const requests = openings.map(
        ({ account, amount }, n): PostingRequest => ({
          id: `request_${run}_${n}`,
          kind: 'opening',
          amount,
          requestedBy: 'test',
          account: `wallet:${wallet(account)}`,
          counter: `operator:9${run}`,
          effectiveAt: START,
          effectiveBasis: 'observed',
        }),
      );
      const clock = manualClock(START + run * 60_000);
      const ledger = await openLedgerOfInserted({
        db: database.db,
        clock,
        books: settings,
        batchMax,
        daemonId: `dmn_${run}`,
      });
      await putOperations(database.owner, operations);
      await database.db.begin(async (tx) => {
        for (const one of requests) await requestPosting(tx, one, clock.now());
      });
      for (let round = 0; round < 3; round++) {
        for (const [n, { states }] of writes.entries()) {
          const state = states[round];
          const one = operations[n];
          if (!state || !one) continue;
          one.state = state;
          await setState(database.owner, [one.id], state);
        }
        expect((await runDry(ledger, clock)).quarantined).toBe(0);
        const expected = model(operations.map(operation), requests, settings);
        const found = await balancesOf(database.db, [...expected.keys()]);
        for (const [name, balance] of expected) {
          expect([name, found.get(name)?.balance ?? 0n]).toEqual([name, balance]);
        }
      }
      expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('Three daemons on one database post everything once, each of them with the lease for a time', async () => {
  const own = await createDatabase();
  const clock = manualClock();
  const many = Array.from({ length: 300 }, (_, n) => ({
    id: `op_${n}`,
    kind: 'give' as const,
    operationNo: 7n,
    toAddr: addr(n % 13),
    amount: 1n,
    recordedAt: START + n,
  }));
  await putOperations(own.owner, many);
  const requests = many.slice(0, 150).map(
    ({ id }, n): PostingRequest => ({
      id: `booking_${id}`,
      kind: 'booking',
      amount: 1n,
      requestedBy: 'test',
      account: `wallet:${addr(n % 13)}`,
      counter: 'external',
      effectiveAt: START,
      effectiveBasis: 'observed',
    }),
  );
  await own.db.begin(async (tx) => {
    for (const one of requests) await requestPosting(tx, one, START);
  });
  const ids = ['dmn_a', 'dmn_b', 'dmn_c'];
  const ledgers = await Promise.all(
    ids.map((daemonId) => openLedgerOfInserted({ db: own.db, clock, daemonId, batchMax: 7 })),
  );
  const done = { posted: 0, quarantined: 0 };
  for (let round = 0; done.posted < 450 && round < 500; round++) {
    // Each has another time, so a lease ends while its holder still takes it for its own.
    const passes = ledgers.map((ledger, n) =>
      ledger.runOnce(clock.now() + ((n + round) % 3) * 11_000),
    );
    for (const { posted, quarantined } of await Promise.all(passes)) {
      done.posted += posted;
      done.quarantined += quarantined;
    }
    clock.advance(11_000);
  }
  expect(done).toEqual({ posted: 450, quarantined: 0 });
  const rows = await own.owner.sql<{ postings: number; found: number }[]>`
    select max(t.posting) as postings, count(t.id)::int as found from tallyhook.operations o
    left join tallyhook.transactions t on t.operation_id = o.id group by o.id`;
  expect(rows.filter((row) => row.postings !== 1 || row.found !== 1)).toEqual([]);
  expect((await balancesOf(own.db, ['external'])).get('external')?.version).toBe(150n);
  const leases = await own.owner.sql<{ fence: bigint }[]>`select fence from tallyhook.leases`;
  expect(leases[0]?.fence).toBeGreaterThan(9n);
  expect(await faultsOf(own.owner)).toEqual(NO_FAULTS);
  await own.drop();
});
