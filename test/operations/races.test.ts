/** Two daemons on one database, at once and on purpose: what must hold whoever comes first. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { WRITER } from '../../src/db/roles.ts';
import { Failure } from '../../src/kernel/errors.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { until } from '../harness/until.ts';
import {
  conclusion,
  freshWallet,
  type OperationsDeps,
  openOperations,
  recorded,
  withBooks,
  write,
} from './journal-parts.ts';
import { type Parking, parking } from './parking.ts';

let database: TestDatabase;
let pool: Db;
let park: Parking;
/** Two daemons. */
let both: [OperationsDeps, OperationsDeps];
beforeAll(async () => {
  database = await createDatabase();
  pool = connect({ url: database.url, role: WRITER, max: 6 });
});
beforeEach(async () => {
  park = parking();
  const given = { clock: park.clock, pause: park.pause, settings: withBooks };
  both = [await openOperations(database.db, given), await openOperations(pool, given)];
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const of = (i: number) => (i % 2 ? both[0] : both[1]).operations;
const give = (toAddr: string, amount = 10n) => ({
  fields: { toAddr, operationNo: 1n, amount, reasonType: 'gift' },
});
async function count(where: 'owner' | 'key_id', value: string): Promise<number> {
  const { sql } = database.owner;
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from tallyhook.operations where ${sql(where)} = ${value}`;
  return row?.n ?? 0;
}

test('Of 100 identical requests with a key one is recorded, in few calls', async () => {
  const before = both.map(({ begun }) => begun());
  const owner = 'identical';
  const one = { ...give(freshWallet()), owner, idempotencyKey: 'k', fingerprint: 'same' };
  const told = await Promise.all(
    Array.from({ length: 100 }, (_, i) => of(i).record(write({ ...one }))),
  );
  const ids = told.flatMap((said) => ('id' in said ? [said.id] : []));
  expect(ids).toHaveLength(1);
  for (const said of told) if ('held' in said) expect(said.held.operation.id).toBe(ids[0]);
  expect(await count('owner', owner)).toBe(1);
  // A call of its own for each of the 99 that was told what holds the key, and few to record.
  const calls = both.map(({ begun }, i) => begun() - (before[i] ?? 0));
  expect(calls.reduce((a, b) => a + b)).toBeLessThanOrEqual(99 + 8);
});

test('Of two equal amounts on one wallet, one at each daemon, one waits', async () => {
  for (let round = 0; round < 10; round++) {
    const toAddr = freshWallet();
    const told: string[] = [];
    const writes = [0, 1].map(async (i) => {
      const id = await recorded(of(i), give(toAddr));
      told.push(id);
      return id;
    });
    const first = await Promise.race(writes);
    await park.parked(1, 2_000);
    expect(told).toEqual([first]);
    const said = conclusion(first, 'rejected', park.clock.now());
    await both[0].operations.conclude(said);
    park.advance(75);
    await Promise.all(writes);
    expect(told).toHaveLength(2);
    expect(await ambiguous(told)).toBe(0);
  }
});

async function ambiguous(ids: string[]): Promise<number> {
  const [row] = await database.owner.sql<{ n: number }[]>`
    select count(*)::int as n from tallyhook.operations where ambiguous and id = any(${ids})`;
  return row?.n ?? -1;
}

test('The limit of a day is reached and never exceeded by 50 writes at once', async () => {
  const keyId = 'key_limited';
  const told = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) =>
      recorded(of(i), { ...give(freshWallet()), keyId, dayLimit: 200n }),
    ),
  );
  expect(told.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
  for (const one of told)
    if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'key_limit' });
  expect(await count('key_id', keyId)).toBe(20);
});

test('A write that was not executed frees its amount of the daily limit at once, an executed one after 25 hours at most', async () => {
  const one = () => recorded(of(0), { ...give(freshWallet()), keyId: 'key_day', dayLimit: 10n });
  const id = await one();
  await expect(one()).rejects.toMatchObject({ code: 'key_limit' });
  await of(0).conclude(conclusion(id, 'rejected', park.clock.now()));
  await one();
  await expect(one()).rejects.toMatchObject({ code: 'key_limit' });
  await database.owner.sql`update tallyhook.daemons set alive_until = '2100-01-01'`;
  park.advance(25 * 3_600_000);
  await one();
});

test('What was moved hours ago counts as what was moved just now, on every daemon', async () => {
  const keyId = 'key_hours';
  const one = (i: number) => recorded(of(i), { ...give(freshWallet()), keyId, dayLimit: 30n });
  await database.owner.sql`update tallyhook.daemons set alive_until = '2100-01-01'`;
  const first = await one(0);
  park.advance(3_600_000);
  await one(1);
  park.advance(3_600_000);
  await one(0);
  for (const i of [0, 1]) await expect(one(i)).rejects.toMatchObject({ code: 'key_limit' });
  // It was found not executed long after: there is room again within a minute.
  await of(0).conclude(conclusion(first, 'rejected', park.clock.now()));
  park.advance(60_000);
  await one(1);
  await expect(one(0)).rejects.toMatchObject({ code: 'key_limit' });
});

test('Once a freeze is answered no further row appears, and what is repeated is still told', async () => {
  const owner = 'hammer';
  const keyed = { ...give(freshWallet()), owner, idempotencyKey: 'before' };
  const before = await recorded(of(0), keyed);
  /** Writes again and again until it is told that writes are frozen. */
  const hammer = async (i: number) => {
    for (;;) {
      try {
        await recorded(of(i), { ...give(freshWallet()), owner });
      } catch (error) {
        if (error instanceof Failure && error.code === 'frozen') return;
        throw error;
      }
    }
  };
  const writers = Array.from({ length: 16 }, (_, i) => hammer(i));
  await until(async () => ((await count('owner', owner)) > 50 ? true : undefined));
  const order = { by: 'ops', reason: 'test' };
  const [one, other] = await Promise.all([of(0).freeze(order), of(1).freeze(order)]);
  const atAnswer = await count('owner', owner);
  expect(other.id).toBe(one.id);
  await Promise.all(writers);
  expect(await count('owner', owner)).toBe(atAnswer);
  expect(await of(1).record(write(keyed))).toMatchObject({ held: { operation: { id: before } } });
  const resend = of(0).recordResend(before, 'not_connected', park.clock.now() + 1);
  await expect(resend).rejects.toMatchObject({ code: 'frozen' });
  await of(1).unfreeze(order);
  await recorded(of(0), { ...give(freshWallet()), owner });
  await expect(of(0).unfreeze(order)).rejects.toMatchObject({ code: 'conflict' });
});

test('A freeze waits for the intent that is being committed', async () => {
  const keyed = { ...give(freshWallet()), owner: 'slow', idempotencyKey: 'k' };
  const order = { by: 'ops', reason: 'test' };
  const abort = new Error('rolled back');
  const told: string[] = [];
  let all: Promise<unknown> | undefined;
  // A row with its key, not committed yet, stops the intent after it saw that nothing is frozen.
  const blocking = database.owner.begin(async (tx) => {
    await tx.sql`
      insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key,
        fingerprint, key_held, method, path, request_body, recorded_at)
      values ('op_blocking', 'other', 'sending', 'gateway', 'slow', 'k', 'k', 'f', true, 'POST',
        '/', '', now())`;
    const recording = recorded(of(0), keyed).then(() => told.push('recorded'));
    expect(await waitingFor(tx.sql, 'transactionid')).toBe(true);
    const freezing = of(1).freeze(order);
    all = Promise.all([recording, freezing.then(() => told.push('frozen'))]);
    expect(await waitingFor(tx.sql, 'advisory')).toBe(true);
    throw abort;
  });
  await expect(blocking).rejects.toBe(abort);
  await all;
  expect(told.toSorted()).toEqual(['frozen', 'recorded']);
  await of(1).unfreeze(order);
});

/** True once somebody waits for a lock of that kind. */
function waitingFor(sql: Db['sql'], locktype: string): Promise<true | undefined> {
  return until(async () => {
    const rows = await sql`
      select 1 as one from pg_locks l where l.locktype = ${locktype} and not l.granted
        and (l.database is null or l.database = (
          select oid from pg_database where datname = current_database()))`;
    return rows.length > 0 ? true : undefined;
  });
}

test('A repeat that comes together with its first uses up none of the day', async () => {
  const filler = recorded(of(0), give(freshWallet()));
  const one = {
    ...give(freshWallet()),
    keyId: 'key_twice',
    dayLimit: 10n,
    idempotencyKey: 'twice',
  };
  const told = await Promise.all(Array.from({ length: 5 }, () => of(0).record(write(one))));
  await filler;
  expect(told.filter((said) => 'id' in said)).toHaveLength(1);
  expect(told.filter((said) => 'held' in said)).toHaveLength(4);
});

test('Of two answers with one number at once, one goes in the books', async () => {
  for (let round = 0; round < 20; round++) {
    const ids = await Promise.all([0, 1].map((i) => recorded(of(i), give(freshWallet()))));
    const same = { txAppNo: 3n, txLogNo: BigInt(9_000 + round) };
    const said = (id: string) => conclusion(id, 'accepted', park.clock.now(), same);
    await Promise.all(ids.map((id, i) => of(i).conclude(said(id))));
    const rows = await database.owner.sql<{ quarantineReason: string | null }[]>`
      select quarantine_reason from tallyhook.due_postings where operation_id = any(${ids})
      order by quarantine_reason`;
    expect(rows.map((row) => row.quarantineReason)).toEqual(['repeated_tx_log_no', null]);
  }
});

test('A number of another app is kept and stays out of the books', async () => {
  const id = await recorded(of(0), give(freshWallet()));
  const said = conclusion(id, 'accepted', park.clock.now(), { txAppNo: 4n, txLogNo: 77n });
  const concluded = await of(0).conclude({ ...said, expectedAppNo: 3n });
  expect(concluded).toMatchObject({ state: 'accepted', txAppNo: 4n, txLogNo: 77n });
  const [row] = await database.owner.sql`
    select quarantine_reason from tallyhook.due_postings where operation_id = ${id}`;
  expect(row).toEqual({ quarantineReason: 'foreign_tx_app_no' });
});

test('One outcome said by many at once is one move and one event', async () => {
  const id = await recorded(of(0), give(freshWallet()));
  const said = conclusion(id, 'accepted', park.clock.now(), { txLogNo: 8_888n });
  const told = await Promise.all(Array.from({ length: 12 }, (_, i) => of(i).conclude(said)));
  expect(new Set(told.map(({ state }) => state))).toEqual(new Set(['accepted']));
  const rows = await database.owner.sql`
    select to_state from tallyhook.transitions where operation_id = ${id} order by id`;
  expect(rows.map((row) => row.toState)).toEqual(['recorded', 'sending', 'accepted']);
  const events = await database.owner.sql`
    select type from tallyhook.events where subject = ${`operation:${id}`}`;
  expect(events).toHaveLength(1);
});

describe('A replay', () => {
  test('Needs few headers, and cookies are never kept', async () => {
    const idempotencyKey = 'headers';
    const id = await recorded(of(0), { ...give(freshWallet()), idempotencyKey });
    const kept = [
      ['Content-Type', 'application/json'],
      ['location', '/x'],
      ['retry-after', '3'],
      ['www-authenticate', 'Bearer'],
    ];
    const headers = [...kept, ['set-cookie', 'a=b'], ['date', 'x'], ['x-request-id', '1']];
    const said = conclusion(id, 'rejected', park.clock.now());
    await of(0).conclude({ ...said, answer: { status: 401, headers, body: Buffer.from('{}') } });
    const again = await of(1).record(write({ ...give(freshWallet()), idempotencyKey }));
    expect(again).toMatchObject({ held: { answer: { status: 401, headers: kept } } });
  });
});
