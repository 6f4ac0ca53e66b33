import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acquireLease, registerDaemon } from '../../src/db/leases.ts';
import { listAccounts, listTransactions } from '../../src/ledger/ledger.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  balancesIn,
  faultsOf,
  give,
  NO_FAULTS,
  openLedger,
  problemsIn,
  putOperations,
  runDry,
  START,
} from './fixture.ts';

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

describe('The one writer', () => {
  test('Posts nothing once another daemon has its lease, though it counts on it', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [give('op_1')]);
    expect((await ledger.runOnce(clock.now())).posted).toBe(1);
    const other = await registerDaemon(database.db, 'dmn_2', clock.now(), 15_000);
    await acquireLease(database.db, 'ledger', other, clock.now() + 11_000, 10_000);
    await putOperations(database.owner, [give('op_2')]);
    clock.advance(1_000);
    expect((await ledger.runOnce(clock.now())).posted).toBe(0);
    clock.advance(30_000);
    expect((await ledger.runOnce(clock.now())).posted).toBe(1);
  });
});

describe('What cannot be posted', () => {
  test('Is set aside with its cause and holds up nobody', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [
      give('op_1', { amount: null }),
      give('op_2'),
      { id: 'op_3', kind: 'mint_sequential', contractId: 1n, state: 'settled' },
    ]);
    expect(await ledger.runOnce(clock.now())).toEqual({ posted: 1, quarantined: 2, more: false });
    expect(await problemsIn(database.owner)).toEqual({
      op_1: 'the amount is not known',
      op_3: 'the token is not known',
    });
  });

  test('Is found alone when the database refuses it', async () => {
    const ledger = await openLedger({ db: database.db, clock, batchMax: 16 });
    await database.owner.sql`
      alter table tallyhook.transactions add constraint no_poison check (reference <> 'poison')`;
    const many = Array.from({ length: 50 }, (_, n) =>
      give(`op_${n}`, {
        recordedAt: START + n,
        reference: n === 0 || n % 17 === 5 ? 'poison' : null,
      }),
    );
    await putOperations(database.owner, many);
    expect(await runDry(ledger, clock)).toEqual({ posted: 46, quarantined: 4 });
    const refused = 'database error: 23514 (no_poison)';
    expect(await problemsIn(database.owner)).toEqual({
      op_0: refused,
      op_5: refused,
      op_22: refused,
      op_39: refused,
    });
    expect(await balancesIn(database.db, 'operator:7')).toEqual({ 'operator:7': '-460' });
  });

  test.each(['insert on tallyhook.entries', 'delete on tallyhook.due_postings'])(
    'Is not blamed when the database is at fault (no %s), and nothing is half written',
    async (right) => {
      const ledger = await openLedger({ db: database.db, clock });
      await putOperations(database.owner, [give('op_1'), give('op_2')]);
      await database.owner.sql.unsafe(`revoke ${right} from tallyhook_writer`);
      await expect(ledger.runOnce(clock.now())).rejects.toThrow('42501');
      expect(await listTransactions(database.db, { limit: 10 })).toEqual([]);
      expect(await listAccounts(database.db, { limit: 10 })).toEqual([]);
      await database.owner.sql.unsafe(`grant ${right} to tallyhook_writer`);
      expect(await runDry(ledger, clock)).toEqual({ posted: 2, quarantined: 0 });
      expect(await problemsIn(database.owner)).toEqual({});
    },
  );
});
