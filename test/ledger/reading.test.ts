import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listAccounts, listTransactions, trialBalancePage } from '../../src/ledger/ledger.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  addr,
  faultsOf,
  give,
  NO_FAULTS,
  openLedger,
  putOperations,
  runDry,
  START,
} from './fixture.ts';

const A = addr(1);

let database: TestDatabase;
let clock: ManualClock;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock(START + 1_000);
});
afterEach(async () => {
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
  await database.drop();
});

describe('Reading the books', () => {
  test('A trial balance can be asked for as of either time', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [give('op_1', { effectiveAt: START + 10 })]);
    await runDry(ledger, clock);
    clock.advance(1_000);
    await putOperations(database.owner, [give('op_2', { effectiveAt: START + 5, amount: 3n })]);
    await runDry(ledger, clock);
    const lines = async (at: { asOf?: number; knownAt?: number }) =>
      (await trialBalancePage(database.db, at, { limit: 10 })).lines.map(
        ({ account, debit, credit }) => `${account} ${debit} ${credit}`,
      );
    const wallet = `wallet:${A}`;
    expect(await lines({})).toEqual(['operator:7 0 13', `${wallet} 13 0`]);
    expect(await lines({ asOf: START + 5 })).toEqual(['operator:7 0 3', `${wallet} 3 0`]);
    expect(await lines({ knownAt: START + 1_000 })).toEqual(['operator:7 0 10', `${wallet} 10 0`]);
    expect(await lines({ asOf: START + 5, knownAt: START + 1_000 })).toEqual([]);
  });

  test('Transactions and accounts are read in pages', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    const many = [1, 2, 3].map((n) => give(`op_${n}`, { recordedAt: START + n, toAddr: addr(n) }));
    await putOperations(database.owner, many);
    await runDry(ledger, clock);
    const ids = async (page: { before?: bigint; account?: string }) =>
      (await listTransactions(database.db, { ...page, limit: 2 })).map((t) => t.id);
    expect(await ids({})).toEqual([3n, 2n]);
    expect(await ids({ before: 2n })).toEqual([1n]);
    expect(await ids({ account: `wallet:${addr(2).toLowerCase()}` })).toEqual([2n]);
    const first = await listAccounts(database.db, { limit: 3 });
    const rest = await listAccounts(database.db, { after: first.at(-1)?.id ?? 0n, limit: 3 });
    expect([first.length, rest.length]).toEqual([3, 1]);
  });
});
