/**
 * What is learned after an opening and happened before it: it posts with the equal correction of
 * the opening, so that the wallet's balance does not move, whoever was first.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  isOffsetByOpening,
  type Ledger,
  listIncludedInOpenings,
  openingId,
  requestPosting,
} from '../../src/ledger/ledger.ts';
import { accountOfWallet, type Operation } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  addr,
  balancesIn,
  faultsOf,
  give,
  NO_FAULTS,
  openLedger,
  operation,
  PLAIN,
  problemsIn,
  putOperations,
  runDry,
  START,
  setState,
} from './fixture.ts';

const [A, B] = [addr(1), addr(2)];
const HOUR = 3_600_000;
/** The start of the look that the opening rests on. */
const LOOK = START;

let database: TestDatabase;
let clock: ManualClock;
let ledger: Ledger;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock(START + HOUR);
  ledger = await openLedger({ db: database.db, clock });
});
afterEach(async () => {
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
  expect(await problemsIn(database.owner)).toEqual({});
  await database.drop();
});

/** The opening of a wallet, judged when its account had so many entries. */
const open = (wallet: string, amount: bigint, version = 0n) =>
  database.db.begin((tx) =>
    requestPosting(
      tx,
      {
        id: openingId(wallet),
        kind: 'opening',
        account: accountOfWallet(wallet),
        counter: 'opening',
        amount,
        effectiveAt: LOOK,
        effectiveBasis: 'observed',
        requestedBy: 'reconciler',
        seen: { at: LOOK, version },
      },
      START,
    ),
  );
const report = (id: string, occurredAt: number, given: Partial<Operation> = {}) =>
  give(id, {
    source: 'report',
    state: 'executed',
    effectiveAt: occurredAt,
    effectiveBasis: 'reported',
    ...given,
  });
const balances = (...names: string[]) => balancesIn(database.db, ...names);
const postAll = () => runDry(ledger, clock);
const kinds = async () => {
  const rows = await database.owner.sql<{ kind: string }[]>`
    select kind from tallyhook.transactions order by id`;
  return rows.map(({ kind }) => kind);
};

describe('A report of what happened before the opening look', () => {
  test('Leaves the wallet as it was, and shows in the books with its correction', async () => {
    await open(A, 100n);
    await postAll();
    await putOperations(database.owner, [report('op_1', LOOK - HOUR)]);
    await postAll();
    expect(await balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '-10',
      opening: '-90',
    });
    expect(await kinds()).toEqual(['opening', 'give', 'opening']);
  });

  test('Is taken back with its correction when people say that it never happened', async () => {
    await open(A, 100n);
    await putOperations(database.owner, [report('op_1', LOOK - HOUR)]);
    await postAll();
    await setState(database.owner, ['op_1'], 'not_executed');
    await postAll();
    expect(await balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '0',
      opening: '-100',
    });
  });

  test('Is corrected when the opening was judged before it was posted, and posted after', async () => {
    await putOperations(database.owner, [report('op_1', LOOK - HOUR)]);
    await postAll();
    await open(A, 100n, 0n);
    await postAll();
    await postAll();
    expect(await balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '100' });
    expect(await kinds()).toEqual(['give', 'opening', 'opening']);
  });

  test('Is not corrected when the opening was computed with it', async () => {
    await putOperations(database.owner, [report('op_1', LOOK - HOUR)]);
    await postAll();
    await open(A, 90n, 1n);
    await postAll();
    expect(await balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '100' });
    expect(await kinds()).toEqual(['give', 'opening']);
  });

  test('Between two wallets corrects only the one that was opened after it', async () => {
    await open(A, 100n);
    await putOperations(database.owner, [
      report('op_1', LOOK - HOUR, { kind: 'transfer', fromAddr: A, toAddr: B, feeAmount: 1n }),
    ]);
    await postAll();
    expect(await balances(`wallet:${A}`, `wallet:${B}`, 'fees')).toEqual({
      [`wallet:${A}`]: '100',
      [`wallet:${B}`]: '10',
      fees: '1',
    });
  });

  test('Of a wallet that paid itself corrects only the fee', async () => {
    await open(A, 100n);
    await putOperations(database.owner, [
      report('op_1', LOOK - HOUR, { kind: 'transfer', fromAddr: A, toAddr: A, feeAmount: 1n }),
    ]);
    await postAll();
    expect(await balances(`wallet:${A}`, 'fees')).toEqual({ [`wallet:${A}`]: '100', fees: '1' });
  });

  test('Has its balance as of then: the report counts from when it occurred', async () => {
    await open(A, 100n);
    await putOperations(database.owner, [report('op_1', LOOK - HOUR)]);
    await postAll();
    const rows = await database.db.sql<{ balance: bigint }[]>`
      select balance from finance_v1.balances_as_of(${new Date(LOOK - 1).toISOString()}, null)
      where account = ${`wallet:${A}`}`;
    expect(rows).toEqual([{ balance: 10n }]);
  });
});

describe('What the opening knows or need not know', () => {
  test('A report of what happened after the look moves the balance', async () => {
    await open(A, 100n);
    await putOperations(database.owner, [report('op_1', LOOK + 1)]);
    await postAll();
    expect(await balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '110' });
  });

  test('A write of ours that the service accepted before the look needs no correction', async () => {
    await putOperations(database.owner, [
      give('op_1', { sentAt: LOOK - 2, answeredAt: LOOK - 1, effectiveAt: LOOK - 1 }),
    ]);
    await open(A, 90n);
    await postAll();
    expect(await balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '100' });
    expect((await kinds()).sort()).toEqual(['give', 'opening']);
  });

  test('Its reversal by people after the look does', async () => {
    await putOperations(database.owner, [
      give('op_1', { sentAt: LOOK - 2, effectiveAt: LOOK - 1 }),
    ]);
    await open(A, 90n);
    await postAll();
    await setState(database.owner, ['op_1'], 'not_executed');
    await postAll();
    expect(await balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '0',
      opening: '-100',
    });
  });
});

describe('For a look', () => {
  const due = { inLedger: true };
  test.each<[string, Partial<Operation>, boolean, number?]>([
    [
      'A report from before it that waits for the ledger is held by the opening',
      report('o', LOOK - 1, due),
      true,
    ],
    ['A report from after it is not', report('o', LOOK, due), false],
    [
      'A report that is posted is not held any more',
      report('o', LOOK - 1, { inLedger: true }),
      false,
      1,
    ],
    ['A write of ours that waits counts', give('o', { sentAt: LOOK - 1, ...due }), false],
    [
      'A reversal that waits is held too',
      give('o', { sentAt: LOOK - 1, inLedger: false }),
      true,
      1,
    ],
  ])('%s', (_, given, expected, timesPosted = 0) => {
    expect(isOffsetByOpening(operation(given), timesPosted, LOOK)).toBe(expected);
  });

  test('Writes are absorbed where every wallet of theirs is opened later, or will be', async () => {
    await open(A, 100n);
    const pay = (id: string, at: number, to: string) =>
      operation(report(id, at, { kind: 'transfer', fromAddr: A, toAddr: to }));
    const writes = [pay('old', LOOK - 1, B), pay('new', LOOK, B), pay('late', LOOK - 1, A)];
    const recent = LOOK - HOUR;
    expect(await listIncludedInOpenings(database.db, writes, PLAIN, LOOK + HOUR)).toEqual(
      new Set(['old', 'late']),
    );
    expect(await listIncludedInOpenings(database.db, writes, PLAIN, recent)).toEqual(
      new Set(['late']),
    );
  });
});
