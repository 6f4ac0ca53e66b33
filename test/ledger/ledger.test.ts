import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  listAccounts,
  listTransactions,
  type PostingRequest,
  requestPosting,
} from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  addr,
  balancesIn,
  faultsOf,
  give,
  NO_FAULTS,
  openLedger,
  PLAIN,
  problemsIn,
  putOperations,
  runDry,
  START,
  setState,
} from './fixture.ts';

const [A, B] = [addr(1), addr(2)];
const HUGE = 123456789012345678901234567890123456789012345678901234567890n;

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

const opening = (
  id: string,
  amount: bigint,
  given: Partial<PostingRequest> = {},
): PostingRequest => ({
  id,
  kind: 'opening',
  account: accountOfWallet(A),
  counter: 'opening',
  amount,
  effectiveAt: START,
  effectiveBasis: 'observed',
  requestedBy: 'reconciler',
  ...given,
});
const wanting = (...all: PostingRequest[]) =>
  database.db.begin(async (tx) => {
    for (const [n, one] of all.entries()) await requestPosting(tx, one, START + n);
  });

describe('The writer posts', () => {
  test('An executed operation once, with everything that names it', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    const told = { reasonType: 'event', reference: 'order 1', txAppNo: 5n, txLogNo: 2n ** 70n };
    await putOperations(database.owner, [
      give('op_1', { ...told, amount: HUGE, effectiveAt: START + 7, effectiveBasis: 'answer' }),
      give('op_2', { state: 'unknown' }),
      give('op_3', { state: 'rejected' }),
    ]);
    expect(await ledger.runOnce(clock.now())).toEqual({ posted: 1, quarantined: 0, more: false });
    expect(await ledger.runOnce(clock.now())).toEqual({ posted: 0, quarantined: 0, more: false });
    expect(await listTransactions(database.db, { limit: 10 })).toEqual([
      {
        ...told,
        id: 1n,
        batchId: 1n,
        kind: 'give',
        operationId: 'op_1',
        postingRequestId: null,
        reverses: null,
        requestedBy: 'app',
        effectiveAt: START + 7,
        effectiveBasis: 'answer',
        recordedAt: START + 1_000,
        entries: [
          { account: 'operator:7', amount: -HUGE, balanceAfter: -HUGE, version: 1n },
          { account: `wallet:${A}`, amount: HUGE, balanceAfter: HUGE, version: 1n },
        ],
      },
    ]);
  });

  test('Two spellings of one wallet to one account, under the first', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [
      give('op_1'),
      give('op_2', { toAddr: A.toUpperCase().replace('0X', '0x'), recordedAt: START + 1 }),
    ]);
    await runDry(ledger, clock);
    await putOperations(database.owner, [give('op_3', { toAddr: A.toLowerCase() })]);
    await runDry(ledger, clock);
    const accounts = await listAccounts(database.db, { limit: 10 });
    expect(accounts.map(({ name, balance, version }) => [name, balance, version])).toEqual(
      expect.arrayContaining([
        ['operator:7', -30n, 3n],
        [`wallet:${A}`, 30n, 3n],
      ]),
    );
    expect(accounts).toHaveLength(2);
    const asked = `wallet:${A.toLowerCase()}`;
    expect(await balancesIn(database.db, asked, 'wallet:nobody')).toEqual({ [asked]: '30' });
  });

  test('A reversal of what leaves the books, and anew what returns to them', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [
      give('op_1', { effectiveAt: START + 7, state: 'executed' }),
    ]);
    await runDry(ledger, clock);
    await setState(database.owner, ['op_1'], 'not_executed');
    await runDry(ledger, clock);
    expect(await balancesIn(database.db, 'operator:7', `wallet:${A}`)).toEqual({
      'operator:7': '0',
      [`wallet:${A}`]: '0',
    });
    await setState(database.owner, ['op_1'], 'executed');
    await runDry(ledger, clock);
    const all = await listTransactions(database.db, { operationId: 'op_1', limit: 10 });
    expect(
      all.map(({ id, kind, reverses, effectiveAt }) => [id, kind, reverses, effectiveAt]),
    ).toEqual([
      [3n, 'give', null, START + 7],
      [2n, 'reversal', 1n, START + 7],
      [1n, 'give', null, START + 7],
    ]);
  });

  test('A reversal of what was posted, even when the books changed meanwhile', async () => {
    const before = await openLedger({ db: database.db, clock });
    await putOperations(database.owner, [give('op_1')]);
    await runDry(before, clock);
    await setState(database.owner, ['op_1'], 'failed');
    const books = { ...PLAIN, operators: new Map([['7', B]]) };
    clock.advance(60_000);
    await runDry(await openLedger({ db: database.db, clock, books, daemonId: 'dmn_2' }), clock);
    expect(await balancesIn(database.db, 'operator:7', `wallet:${B}`)).toEqual({
      'operator:7': '0',
    });
  });

  test('Every batch strictly later, even when the clock stands still or goes back', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    for (const [n, at] of [START, START, START - 5_000, START + 9].entries()) {
      clock.set(at);
      await putOperations(database.owner, [give(`op_${n}`)]);
      await ledger.runOnce(clock.now());
    }
    const all = await listTransactions(database.db, { limit: 10 });
    expect(all.map((t) => t.recordedAt - START).reverse()).toEqual([0, 1, 2, 9]);
  });

  test('Token writes as movements, and nothing into accounts', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    const token = { contractId: 3n, tokenId: 2n ** 64n, txHash: 'h', state: 'settled' as const };
    await putOperations(database.owner, [
      { id: 'op_1', kind: 'mint', toAddr: A, ...token },
      {
        id: 'op_2',
        kind: 'transfer_from',
        fromAddr: A,
        toAddr: B,
        ...token,
        recordedAt: START + 1,
      },
      { id: 'op_3', kind: 'burn', ...token, state: 'accepted' },
      { id: 'op_4', kind: 'other', state: 'settled' },
    ]);
    expect(await runDry(ledger, clock)).toEqual({ posted: 2, quarantined: 0 });
    await setState(database.owner, ['op_2'], 'failed');
    await runDry(ledger, clock);
    const rows = await database.db.sql`
      select kind, contract_id, token_id, from_addr, to_addr, operation_id, posting, tx_hash
      from tallyhook.nft_movements order by id`;
    const same = { contractId: 3n, tokenId: 2n ** 64n, txHash: 'h' };
    expect([...rows]).toEqual([
      { kind: 'mint', fromAddr: null, toAddr: A, operationId: 'op_1', posting: 1, ...same },
      { kind: 'transfer', fromAddr: A, toAddr: B, operationId: 'op_2', posting: 1, ...same },
      { kind: 'reversal', fromAddr: B, toAddr: A, operationId: 'op_2', posting: 2, ...same },
    ]);
    expect(await listAccounts(database.db, { limit: 10 })).toEqual([]);
  });
});

describe('Wanted postings', () => {
  test('Wanting twice posts once, and only if the caller commits', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await wanting(opening('opening:a', 40n));
    await wanting(opening('opening:a', 41n));
    const undone = new Error('undo');
    const run = database.db.begin(async (tx) => {
      await requestPosting(tx, opening('opening:b', 5n), START);
      throw undone;
    });
    await expect(run).rejects.toBe(undone);
    expect(await runDry(ledger, clock)).toEqual({ posted: 1, quarantined: 0 });
    expect(await balancesIn(database.db, `wallet:${A}`, 'opening')).toEqual({
      [`wallet:${A}`]: '40',
      opening: '-40',
    });
  });

  test('An opening of zero opens the account without an entry', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    await wanting(opening('opening:a', 0n));
    expect(await runDry(ledger, clock)).toEqual({ posted: 1, quarantined: 0 });
    expect(await balancesIn(database.db, `wallet:${A}`)).toEqual({ [`wallet:${A}`]: '0' });
    expect(await listTransactions(database.db, { limit: 10 })).toEqual([]);
  });

  test('A reversal waits for what it takes back, and names it', async () => {
    const ledger = await openLedger({ db: database.db, clock });
    const back = { kind: 'reversal', counter: 'external', reverses: 'drift:1' } as const;
    await wanting(
      opening('drift:1:back', -5n, back),
      opening('drift:1', 5n, { kind: 'booking', counter: 'external' }),
      opening('drift:2:back', -5n, { ...back, reverses: 'drift:2' }),
      opening('drift:1:again', -5n, back),
    );
    expect(await runDry(ledger, clock)).toEqual({ posted: 2, quarantined: 2 });
    const all = await listTransactions(database.db, { account: 'external', limit: 10 });
    expect(
      all.map(({ kind, postingRequestId, reverses }) => [kind, postingRequestId, reverses]),
    ).toEqual([
      ['reversal', 'drift:1:back', 1n],
      ['booking', 'drift:1', null],
    ]);
    expect(await problemsIn(database.owner)).toEqual({
      'drift:2:back': 'what it reverses is not in the ledger',
      'drift:1:again': 'database error: 23505 (transactions_reversed_once)',
    });
  });

  test('An account that could not exist is refused where it is wanted', async () => {
    const wrong = wanting(opening('opening:a', 1n, { account: 'wallet:short' }));
    await expect(wrong).rejects.toThrow('the account has no valid name');
  });
});
