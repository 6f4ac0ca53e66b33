/**
 * Of writes that could not be told apart one goes at a time, for a while; nothing else waits, and
 * what need not wait costs one call.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { WRITER } from '../../src/db/roles.ts';
import { findByIdempotencyKey, type Kind, type NewWrite } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  conclusion,
  freshWallet,
  losing,
  OPERATOR,
  type OperationsDeps,
  openOperations,
  readBack,
  recorded,
  withBooks,
  write,
} from './journal-parts.ts';
import { type Parking, parking } from './parking.ts';

const WAIT_MS = 2_000;
const LOOK_MS = 75;
let database: TestDatabase;
let pool: Db;
let park: Parking;
let parts: OperationsDeps;
let toAddr: string;
beforeAll(async () => {
  database = await createDatabase();
  pool = connect({ url: database.url, role: WRITER, max: 6 });
});
beforeEach(async () => {
  park = parking();
  parts = await open(database.db);
  toAddr = freshWallet();
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function open(db: Db, settings: object = {}) {
  const { clock, pause } = park;
  return openOperations(db, { clock, pause, settings: { ...withBooks, ...settings } });
}
const give = (amount: bigint, more: Partial<NewWrite> = {}): Partial<NewWrite> => ({
  fields: { toAddr, operationNo: 1n, amount, reasonType: 'gift' },
  ...more,
});
const answer = (id: string) =>
  parts.operations.conclude(conclusion(id, 'accepted', park.clock.now(), { txLogNo: unique() }));
let numbers = 0n;
const unique = () => ++numbers;

describe('A second equal amount on the wallet of a user', () => {
  test("Waits until the first's answer, and then goes unmarked", async () => {
    const first = await recorded(parts.operations, give(10n));
    const second = parts.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    await answer(first);
    expect(await second).toMatchObject({ ambiguous: false });
  });

  test('Waits for an answer that another daemon has', async () => {
    const other = await open(pool);
    const first = await recorded(parts.operations, give(10n));
    const second = other.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    await answer(first);
    park.advance(LOOK_MS);
    expect(await second).toMatchObject({ ambiguous: false });
  });

  test('Goes out marked when the wait is over', async () => {
    await recorded(parts.operations, give(10n));
    const second = parts.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    park.advance(WAIT_MS);
    expect(await second).toMatchObject({ ambiguous: true });
  });

  test('Is refused when the wait is over, where that is set, with what is open', async () => {
    const strict = await open(database.db, { refuseConflicts: true });
    const first = await recorded(strict.operations, give(10n));
    const second = strict.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    park.advance(WAIT_MS);
    await expect(second).rejects.toMatchObject({
      code: 'wallet_outcome_pending',
      members: { operation_ids: [first] },
    });
  });

  test('Does not wait where too many wait', async () => {
    const full = await open(database.db, { waitingMax: 0 });
    await recorded(full.operations, give(10n));
    expect(await full.operations.record(write(give(10n)))).toMatchObject({ ambiguous: true });
  });

  test('Is released as shutting down at the end', async () => {
    await recorded(parts.operations, give(10n));
    const second = parts.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    parts.operations.close();
    await expect(second).rejects.toMatchObject({ code: 'shutting_down' });
  });

  test('Waits for one whose outcome is unknown, and not for an undecided one', async () => {
    const first = await recorded(parts.operations, give(10n));
    const { operations } = parts;
    await operations.conclude(conclusion(first, 'unknown', park.clock.now()));
    const second = operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    const to = { id: first, to: 'undecided', at: park.clock.now(), cause: 'test' } as const;
    await database.db.begin((tx) => operations.move(tx, [to]));
    park.advance(LOOK_MS);
    expect(await second).toMatchObject({ ambiguous: false });
  });

  test('Waits beside two that come to its amount together', async () => {
    await recorded(parts.operations, give(3n));
    const seven = await recorded(parts.operations, give(7n));
    const third = parts.operations.record(write(give(10n)));
    await park.parked(1, WAIT_MS);
    await answer(seven);
    expect(await third).toMatchObject({ ambiguous: false });
  });

  test('Asked for ten times at once goes one at a time, in the order of asking', async () => {
    const order: number[] = [];
    const all = Array.from({ length: 10 }, async (_, i) => {
      const id = await recorded(parts.operations, give(10n));
      order.push(i);
      return id;
    });
    for (const [i, one] of all.entries()) {
      const id = await one;
      await park.parked(all.length - 1 - i, WAIT_MS);
      expect(order.length).toBe(i + 1);
      await answer(id);
    }
    expect(order).toEqual(Array.from(all, (_, i) => i));
  });
});

describe('What does not wait', () => {
  test('Different amounts, of two daemons too', async () => {
    const other = await open(pool);
    for (const [i, amount] of [10n, 11n, 22n, 44n].entries()) {
      const { operations } = i % 2 ? other : parts;
      expect(await operations.record(write(give(amount)))).toMatchObject({ ambiguous: false });
    }
  });

  test('Equal amounts of one operator to many', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, () =>
        recorded(parts.operations, give(10n, { fields: fieldsTo(freshWallet()) })),
      ),
    );
    expect(new Set(ids).size).toBe(20);
  });

  test('A write that may go costs one call, and 40 at once cost few', async () => {
    const before = parts.begun();
    await recorded(parts.operations, give(10n));
    expect(parts.begun() - before).toBe(1);
    await Promise.all(
      Array.from({ length: 40 }, () =>
        recorded(parts.operations, give(10n, { fields: fieldsTo(freshWallet()) })),
      ),
    );
    expect(parts.begun() - before).toBeLessThanOrEqual(4);
  });
});

const fieldsTo = (to: string) => ({ toAddr: to, operationNo: 1n, amount: 10n, reasonType: 'gift' });
const token = () => ({ contractId: 5n, tokenId: unique() });
const minted = () => ({ contractId: unique(), toAddr, tokenUri: 'u', metaData: 'm' });

describe('NFT writes', () => {
  it.each([
    ['Equal sequential mints', 'mint_sequential', minted],
    ['Burns of one token', 'burn', token],
    ['Changes of one token', 'set_extra_data', token],
  ] as const)('%s go one at a time', async (_, kind: Kind, make) => {
    const fields = make();
    const first = await recorded(parts.operations, { kind, fields });
    const second = parts.operations.record(write({ kind, fields: { ...fields } }));
    await park.parked(1, WAIT_MS);
    await answer(first);
    expect(await second).toMatchObject({ ambiguous: false });
  });

  test('Sequential mints that differ in one field go together', async () => {
    const fields = minted();
    for (const more of [{}, { tokenUri: 'v' }, { metaData: null }, { extraData: '' }])
      await recorded(parts.operations, { kind: 'mint_sequential', fields: { ...fields, ...more } });
  });
});

describe('A held wallet', () => {
  const hold = (key: string, ms: number) =>
    database.db.begin((tx) => parts.operations.hold(tx, key.toLowerCase(), park.clock.now() + ms));
  const unhold = (key: string) =>
    database.db.begin((tx) => parts.operations.unhold(tx, key.toLowerCase()));

  test('Lets no write through until it is released', async () => {
    await hold(toAddr, 1_000);
    const held = parts.operations.record(write(give(10n)));
    await park.parked(1, 1_000);
    await unhold(toAddr);
    park.advance(LOOK_MS);
    expect(await held).toMatchObject({ ambiguous: false });
  });

  test('Is held no longer than was said, nor than a write may wait', async () => {
    for (const [ms, atMost] of [
      [1_000, 1_000],
      [9_000, WAIT_MS],
    ] as const) {
      toAddr = freshWallet();
      await hold(toAddr, ms);
      const held = parts.operations.record(write(give(10n)));
      await park.parked(1, atMost);
      park.advance(atMost);
      expect(await held).toMatchObject({ ambiguous: false });
    }
  });

  test('Holds up nobody where too many wait', async () => {
    const full = await open(database.db, { waitingMax: 0 });
    await hold(toAddr, 1_000);
    const before = full.begun();
    await recorded(full.operations, give(10n));
    expect(full.begun() - before).toBe(2);
  });

  test('May be one of ours, and then holds what others do with it', async () => {
    await hold(OPERATOR, 1_000);
    const held = parts.operations.record(write(give(10n)));
    await park.parked(1, 1_000);
    await recorded(parts.operations, { kind: 'burn', fields: token() });
    await unhold(OPERATOR);
    park.advance(LOOK_MS);
    expect(await held).toMatchObject({ ambiguous: false });
  });
});

describe('A commit that nobody confirms', () => {
  test('Leaves a write that is ended as not sent, and its key free', async () => {
    const { operations } = await open(losing(database.db));
    const idempotencyKey = 'lost-1';
    await expect(recorded(operations, give(10n, { idempotencyKey }))).rejects.toMatchObject({
      code: 'CONNECTION_CLOSED',
    });
    const held = await findByIdempotencyKey(database.db, 'app', idempotencyKey);
    expect(held?.operation.state).toBe('sending');
    const id = held?.operation.id ?? '';
    expect(await operations.runOnce(park.clock.now())).toBe(1);
    expect(await readBack.eventsOf(database.owner, id)).toMatchObject([
      { type: 'operation.rejected', error: { class: 'not_sent', code: 'unconfirmed' } },
    ]);
    await recorded(operations, give(10n, { idempotencyKey }));
  });

  test('Is told as unknown where the write may be sent from the queue', async () => {
    const { operations } = await open(losing(database.db));
    const expiresAt = park.clock.now() + 60_000;
    const lost = operations.record(write(give(10n, { expiresAt, queue: true })));
    await expect(lost).rejects.toMatchObject({
      code: 'outcome_unknown',
      members: { operation_id: expect.stringMatching(/^op_/) },
    });
    expect(await operations.runOnce(park.clock.now())).toBe(0);
  });
});
