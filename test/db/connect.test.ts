/** Errors without values, transactions, retries, and the connection pool. */
import { sql as drizzleSql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asJson, connect, type Db } from '../../src/db/connect.ts';
import {
  DatabaseError,
  isAway,
  isOutage,
  isRetryable,
  isUnavailable,
  toDatabaseError,
} from '../../src/db/sqlstate.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { useDatabase } from '../harness/database.ts';

const HUSH = 'hush-9007199254740993';

const database = await useDatabase();
let owner: Db;
beforeAll(async () => {
  owner = connect({ url: database.url, max: 4 });
  await owner.sql`create table public.kept (id int primary key, n numeric not null check (n >= 0))`;
  await owner.sql`insert into public.kept select i, 0 from generate_series(1, 9) i`;
});
afterAll(() => owner.end());

const first = async (rows: PromiseLike<readonly object[]>) =>
  Object.values((await rows)[0] ?? {})[0] as unknown;

async function errorOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('the work succeeded');
}

describe('A failed statement', () => {
  it.each<[string, () => Promise<unknown>, string]>([
    [
      'a parameter of the wrong type',
      () => owner.begin(({ sql }) => sql`select ${HUSH}::numeric`),
      '22P02',
    ],
    [
      'a check',
      () =>
        owner.begin(
          ({ sql }) => sql`insert into public.kept values (99, ${'-9007199254740993'}::numeric)`,
        ),
      '23514',
    ],
    [
      'a duplicate',
      () => owner.begin(({ sql }) => sql`insert into public.kept values (1, 9007199254740993)`),
      '23505',
    ],
    [
      'the text of the statement',
      () => owner.begin(({ sql }) => sql.unsafe(`select '${HUSH}'::int`)),
      '22P02',
    ],
    [
      'drizzle',
      () => owner.begin(({ orm }) => orm.execute(drizzleSql`select ${HUSH}::int`)),
      '22P02',
    ],
    [
      'a batch',
      () =>
        owner.begin(
          ({ sql }) =>
            sql`select n from jsonb_to_recordset(${asJson([{ n: HUSH }])}::jsonb) as r(n int)`,
        ),
      '22P02',
    ],
  ])('by %s has its SQLSTATE and none of its values, also in the log', async (_what, act, code) => {
    const error = await errorOf(act);
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toMatchObject({ code });
    let text = '';
    makeLog('trace', { write: (line: string) => (text += line) }).error({ err: error }, 'x');
    const { stack, cause } = error as Error;
    const all = `${text}${stack}${String(cause)}${JSON.stringify(error)}${String(error)}`;
    expect(all).not.toMatch(/hush|9007199254740993/);
    expect(all).not.toMatch(/select|insert/);
  });

  it('outside a transaction leaves no value in the log', async () => {
    const raw = await errorOf(() => Promise.resolve(owner.sql`select ${HUSH}::int`));
    const wrapped = await errorOf(() => owner.orm.execute(drizzleSql`select ${HUSH}::int`));
    let text = '';
    const log = makeLog('trace', { write: (line: string) => (text += line) });
    for (const err of [raw, wrapped]) {
      log.error({ err }, 'x');
      expect(toDatabaseError(err)).toMatchObject({ code: '22P02', name: 'DatabaseError' });
    }
    expect(text).not.toContain('hush');
  });

  it('names the violated constraint', async () => {
    const error = await errorOf(() =>
      owner.begin(({ sql }) => sql`insert into public.kept values (1, 1)`),
    );
    expect(error).toMatchObject({ code: '23505', constraint: 'kept_pkey' });
  });

  const MEANINGS = { isRetryable, isAway, isOutage, isUnavailable };
  const AWAY = ['isAway', 'isOutage', 'isUnavailable'];
  const REFUSED = ['isOutage', 'isUnavailable'];
  it.each<[string, string[]]>([
    ['40001', ['isRetryable', 'isUnavailable']],
    ['40P01', ['isRetryable', 'isUnavailable']],
    ['55P03', ['isRetryable', 'isUnavailable']],
    ['23505', []],
    ['22P05', []],
    ['54000', []],
    ['57014', ['isUnavailable']],
    ['57P01', AWAY],
    ['57P02', AWAY],
    ['57P03', AWAY],
    ['57P04', AWAY],
    ['CONNECTION_CLOSED', AWAY],
    ['CONNECT_TIMEOUT', AWAY],
    ['ECONNREFUSED', AWAY],
    ['ENOTFOUND', AWAY],
    ['53300', AWAY],
    ['DEADLINE', AWAY],
    ['25006', REFUSED],
    ['53000', REFUSED],
    ['53100', REFUSED],
    ['53200', REFUSED],
    ['53400', REFUSED],
    ['58030', REFUSED],
  ])('with code %s means %s', (code, meanings) => {
    const error = new DatabaseError(code);
    const held = Object.entries(MEANINGS).filter(([, means]) => means(error));
    expect(held.map(([name]) => name)).toEqual(meanings);
  });

  it('keeps an error that is not from the database unchanged', () => {
    const error = new TypeError('ours');
    expect(toDatabaseError(error)).toBe(error);
    expect([isAway(error), isRetryable(error)]).toEqual([false, false]);
  });

  it('against a server that does not run means that the database is unreachable', async () => {
    const nowhere = connect({ url: 'postgres://postgres@127.0.0.1:1/x', max: 1 });
    const error = await errorOf(() => nowhere.begin(({ sql }) => sql`select 1`));
    expect(isAway(error)).toBe(true);
    await nowhere.end(0);
  });
});

describe('A transaction', () => {
  it('that fails leaves no changes', async () => {
    const boom = new Error('boom');
    const error = await errorOf(() =>
      owner.begin(async ({ sql }) => {
        await sql`insert into public.kept values (50, 1)`;
        throw boom;
      }),
    );
    expect(error).toBe(boom);
    expect(await owner.sql`select id from public.kept where id = 50`).toEqual([]);
  });

  it('that has ended takes no further statement of work that goes on', async () => {
    const { promise: ended, resolve: goOn } = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    const failing = owner.begin(async ({ sql, orm }) => {
      const both = async () => {
        await sql`update public.kept set n = 41 where id = 7`;
        await ended;
        await expect(async () => sql`update public.kept set n = 42 where id = 7`).rejects.toThrow(
          'has ended',
        );
        await orm.execute(drizzleSql`update public.kept set n = 43 where id = 7`);
      };
      late = both();
      await Promise.all([sql`select 1 / 0`, late]);
    });
    await expect(failing).rejects.toMatchObject({ code: '22012' });
    goOn();
    const cause = { message: expect.stringContaining('has ended') };
    await expect(late).rejects.toMatchObject({ cause });
    expect(await first(owner.sql`select n::int from public.kept where id = 7`)).toBe(0);
  });

  it('on a snapshot is retried when a row has changed since, and then succeeds', async () => {
    let runs = 0;
    await owner.begin(
      async ({ sql }) => {
        runs++;
        const [row] = await sql<{ n: bigint }[]>`select n from public.kept where id = 2`;
        if (runs === 1) await database.owner.sql`update public.kept set n = n + 10 where id = 2`;
        const next = ((row?.n ?? 0n) + 1n).toString();
        await sql`update public.kept set n = ${next}::numeric where id = 2`;
      },
      { snapshot: true },
    );
    expect(runs).toBe(2);
    expect(await first(owner.sql`select n from public.kept where id = 2`)).toBe(11n);
  });

  it('uses read committed, also where the default of the database is another', async () => {
    const name = new URL(database.url).pathname.slice(1);
    const level = `alter database ${name} set default_transaction_isolation`;
    await owner.sql.unsafe(`${level} = 'serializable'`);
    const later = connect({ url: database.url, max: 1 });
    try {
      expect(await first(later.sql`show transaction_isolation`)).toBe('read committed');
      expect(await later.begin((tx) => first(tx.sql`show transaction_isolation`))).toBe(
        'read committed',
      );
    } finally {
      await later.end();
      await owner.sql.unsafe(`${level} = 'read committed'`);
    }
  });

  it('fails after five attempts', async () => {
    let runs = 0;
    const error = await errorOf(() =>
      owner.begin(
        async ({ sql }) => {
          runs++;
          await sql`select n from public.kept where id = 3`;
          await database.owner.sql`update public.kept set n = n + 1 where id = 3`;
          await sql`update public.kept set n = 0 where id = 3`;
        },
        { snapshot: true },
      ),
    );
    expect(runs).toBe(5);
    expect(error).toMatchObject({ code: '40001' });
  });

  it('that deadlocks with another is retried, and both succeed', async () => {
    let met = 0;
    let meet = () => {};
    const both = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const cross = (one: number, other: number) =>
      owner.begin(async ({ sql }) => {
        await sql`update public.kept set n = n + 1 where id = ${one}`;
        if (++met >= 2) meet();
        await both;
        await sql`update public.kept set n = n + 1 where id = ${other}`;
      });
    await Promise.all([cross(4, 5), cross(5, 4)]);
    expect(await owner.sql`select n from public.kept where id in (4, 5)`).toEqual([
      { n: 2n },
      { n: 2n },
    ]);
  });

  it('runs as the role of its pool', async () => {
    expect(await first(database.db.sql`select current_user::text as x`)).toBe('tallyhook_writer');
    await database.db.sql`reset role`;
    expect(await first(database.db.sql`select current_user::text as x`)).toBe('tallyhook_writer');
  });
});

function driverFault(): TypeError {
  const fault = new TypeError("Cannot read properties of null (reading 'write')");
  fault.stack = `${fault}\n    at nextWrite (/x/node_modules/postgres/src/connection.js:255:22)`;
  return fault;
}

describe('The pool', () => {
  it('plans reads of few rows, also where the defaults of the database are others', async () => {
    const name = new URL(database.url).pathname.slice(1);
    const ours = ['jit off', 'random_page_cost 1.1', 'max_parallel_workers_per_gather 0'];
    for (const other of ['jit = on', 'random_page_cost = 4', 'max_parallel_workers_per_gather = 2'])
      await owner.sql.unsafe(`alter database ${name} set ${other}`);
    const db = connect({ url: database.url, max: 1 });
    for (const [setting, value] of ours.map((line) => line.split(' ')))
      expect(await first(db.sql`select current_setting(${setting ?? ''})`)).toBe(value);
    await db.end();
  });

  it("is replaced after the driver's known fault, and after no other error", async () => {
    const db = connect({ url: database.url, max: 2 });
    const fault = driverFault();
    const others = [
      new TypeError('x'),
      new Error(fault.message),
      Object.assign(new TypeError('x'), { stack: 'at write (/x/node_modules/postgres/src/a.js)' }),
      Object.assign(new Error('x'), { stack: fault.stack }),
      'nextWrite postgres/src/connection.js',
      undefined,
    ];
    for (const other of others) expect(db.renewAfter(other)).toBe(false);
    const before = await first(db.sql`select pg_backend_pid() as x`);
    expect(db.renewAfter(fault)).toBe(true);
    expect(await first(db.sql`select pg_backend_pid() as x`)).not.toBe(before);
    expect(await db.begin(({ sql }) => first(sql`select 1 as x`))).toBe(1);
    await db.end();
    await db.end();
  });

  it('runs on the new pool what waited for a connection of the replaced one', async () => {
    const db = connect({ url: database.url, max: 1, waitingMax: 2 });
    const running = errorOf(() => db.begin(({ sql }) => sql`select pg_sleep(20)`));
    const waiting = [
      db.begin(({ sql }) => first(sql`select 1 as x`)),
      db.single(({ sql }) => first(sql`select 2 as x`)),
    ];
    expect(db.load()).toEqual({ running: 1, waiting: 2 });
    expect(db.renewAfter(driverFault())).toBe(true);
    expect(isAway(await running)).toBe(true);
    expect(await Promise.all(waiting)).toEqual([1, 2]);
    await db.end();
  });

  it('fails a statement or transaction without an answer after its deadline', async () => {
    const db = connect({ url: database.url, max: 2, deadlineMs: 200 });
    const late = { code: 'DEADLINE' };
    expect(await errorOf(async () => db.sql`select pg_sleep(2)`)).toMatchObject(late);
    const condition = db.sql`pg_sleep(2) is not null`;
    expect(await errorOf(async () => db.sql`select where ${condition}`)).toMatchObject(late);
    await db.end(0);
  });

  it('recovers when the server ends an idle connection', async () => {
    const db = connect({ url: database.url, max: 1 });
    const pid = await first(db.sql`select pg_backend_pid() as x`);
    await database.owner.sql`select pg_terminate_backend(${pid as number}, 5000)`;
    // One query may still meet the dead connection; the next has a new one.
    await db.sql`select 1`.catch(() => {});
    expect(await first(db.sql`select pg_backend_pid() as x`)).not.toBe(pid);
    await db.end();
  });
});
