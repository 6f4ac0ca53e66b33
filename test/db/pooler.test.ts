/**
 * Behind a pooler in transaction mode, of which only one side is needed here: it does not pass on
 * the settings of a session, or refuses them. `.ci/run` runs the promises behind a real one.
 */

import { connect as connectTcp, createServer, type Server } from 'node:net';
import { sql as drizzleSql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reach } from '../../src/db/access/reach.ts';
import { WRITER } from '../../src/db/access/roles.ts';
import { SESSION } from '../../src/db/access/session.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { isAway } from '../../src/db/sqlstate.ts';
import { useDatabase } from '../harness/database.ts';
import { listen } from '../harness/listen.ts';

const database = await useDatabase();
const LOGIN = `pooled_${process.pid}`;
const MODE = '?pool_mode=transaction';
const servers: Server[] = [];
/** Of the pooler that ignores settings. */
let port: number;

beforeAll(async () => {
  const { sql } = database.owner;
  await sql.unsafe(`create role ${LOGIN} login in role ${WRITER}`);
  const target = new URL(database.url);
  await sql.unsafe(`alter role ${LOGIN} password '${LOGIN}'`);
  for (const [name, value] of Object.entries(SESSION))
    await sql.unsafe(`alter role ${LOGIN} set ${name} = '${value}'`);
  port = await serve((near) => {
    const far = connectTcp(Number(target.port), target.hostname);
    near.once('data', () => {
      // It has no TLS.
      near.write('N');
      near.once('data', (startup) => {
        far.write(withoutSettings(startup as Buffer));
        near.pipe(far);
      });
    });
    far.pipe(near);
    return far;
  });
});
afterAll(async () => {
  for (const server of servers) server.close();
  await database.owner.sql.unsafe(`drop role ${LOGIN}`);
});

type Accept = Parameters<typeof createServer>[1] & {};

async function serve(accept: (...near: Parameters<Accept>) => { on: unknown }): Promise<number> {
  const server = createServer((near) => {
    const far = accept(near) as typeof near;
    for (const socket of [near, far]) socket.on('error', () => {});
  });
  servers.push(server);
  return listen(server);
}

/** A pooler that refuses every client with this message. */
function refusing(message: string): Promise<number> {
  const fields = ['SFATAL', 'VFATAL', 'C08P01', `M${message}`].map((one) => `${one}\0`).join('');
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + fields.length + 1);
  return serve((near) =>
    // Before it is asked for TLS, or what the session is.
    near.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(`${fields}\0`)])),
  );
}

/** The parameters of a startup message that a pooler passes on. */
function withoutSettings(startup: Buffer): Buffer {
  const words = startup.subarray(8).toString('latin1').split('\0');
  const kept = ['user', 'database', 'application_name', 'client_encoding', 'TimeZone'];
  const pairs = words.flatMap((name, n) =>
    n % 2 === 0 && kept.includes(name) ? [name, words[n + 1] ?? ''] : [],
  );
  const body = Buffer.from(`${pairs.join('\0')}\0\0`, 'latin1');
  const head = Buffer.from(startup.subarray(0, 8));
  head.writeInt32BE(8 + body.length);
  return Buffer.concat([head, body]);
}

/** The database at this port, as this login. */
function at(place: number, login = LOGIN, query = MODE): string {
  const url = Object.assign(new URL(database.url), { port: String(place) });
  if (login === LOGIN) Object.assign(url, { username: LOGIN, password: LOGIN });
  return `${url.href}${query}`;
}

const refusal = (url: string) =>
  reach({ variable: 'DATABASE_URL', url, role: WRITER }, 0).then(
    () => 'reached',
    (error) => error.detail,
  );

describe('A start behind a pooler', () => {
  it('is refused with one line when the pooler refuses the settings of the session', async () => {
    const refuses = await refusing('unsupported startup parameter: jit');
    expect(await refusal(at(refuses, LOGIN, ''))).toBe(
      `DATABASE_URL: 127.0.0.1:${refuses} refuses the settings of the session; behind PgBouncer ` +
        'in transaction mode add ?pool_mode=transaction to the URL, else connect to Postgres',
    );
  });

  it('is refused with one line when the pooler ignores them', async () => {
    expect(await refusal(at(port, LOGIN, ''))).toBe(
      'DATABASE_URL: a pooler ignores the settings of the session; behind PgBouncer in ' +
        'transaction mode add ?pool_mode=transaction to the URL, else connect to Postgres',
    );
  });

  it('is refused with one line when the login lacks the settings or has other rights', async () => {
    const owner = decodeURIComponent(new URL(database.url).username);
    const { sql } = database.owner;
    expect(await refusal(at(port, owner))).toMatch(
      /login \w+ itself needs the settings .*jit, .*statement_timeout; run npx tallyhook setup$/,
    );
    await sql.unsafe(`alter role ${LOGIN} reset statement_timeout`);
    expect(await refusal(at(port))).toBe(
      `DATABASE_URL: with pool_mode=transaction login ${LOGIN} itself needs the settings ` +
        'statement_timeout; run npx tallyhook setup',
    );
    await sql.unsafe(`alter role ${LOGIN} set statement_timeout = '60s'`);
    await sql.unsafe(`grant ${owner} to ${LOGIN}`);
    expect(await refusal(at(port))).toBe(
      `DATABASE_URL: with pool_mode=transaction login ${LOGIN} must have the rights of ${WRITER} ` +
        'and no others; use the login that npx tallyhook setup makes',
    );
    await sql.unsafe(`revoke ${owner} from ${LOGIN}`);
  });

  it('goes on with pool_mode=transaction and the login of the daemon', async () => {
    expect(await refusal(at(port))).toBe('reached');
  });

  it('waits for a pooler that cannot reach Postgres', async () => {
    const away = await refusing('server login has been failing, try again later');
    const db = connect({ url: at(away), max: 1 });
    const error = await db.sql`select 1`.then(undefined, (raw) => raw);
    expect(isAway(error)).toBe(true);
    await db.end(0);
  });
});

describe('Without a session', () => {
  const within = async <T>(
    options: { max: number; timeoutMs?: number },
    work: (db: Db) => Promise<T>,
  ) => {
    const { max, timeoutMs: statementTimeoutMs } = options;
    const limits = statementTimeoutMs ? { statementTimeoutMs, eachStatement: true } : {};
    const db = connect({ url: at(port), max, ...limits });
    try {
      return await work(db);
    } finally {
      await db.end();
    }
  };
  const timeoutIn = async ({ sql }: Pick<Db, 'sql'>) =>
    (await sql`select current_setting('statement_timeout') as x, ${1}::int as n`)[0]?.x;

  it('no statement is prepared and no setting kept', async () => {
    await within({ max: 1, timeoutMs: 5_000 }, async (db) => {
      for (let n = 0; n < 3; n++) expect(await timeoutIn(db)).toBe('5s');
      const other = await db.orm.execute(
        drizzleSql`select current_setting('statement_timeout') as x`,
      );
      expect(other).toEqual([{ x: '5s' }]);
      expect(await db.begin(timeoutIn)).toBe('5s');
      expect(await db.single(timeoutIn)).toBe('1min');
      const prepared = await db.single(({ sql }) => sql`select * from pg_prepared_statements`);
      expect(prepared).toEqual([]);
    });
  });

  it('a statement that exceeds its own timeout is cancelled', async () => {
    await within({ max: 1, timeoutMs: 200 }, async (db) => {
      const slow = db.sql`select pg_sleep(${30}::int)`.then(undefined, (raw) => raw);
      expect(await slow).toMatchObject({ code: '57014' });
    });
  });

  it('no statement is sent behind another on its connection', async () => {
    await within({ max: 2 }, async (db) => {
      const rows = Promise.all(
        Array.from({ length: 6 }, (_, n) => db.sql`select pg_sleep(${0.2}::float), ${n}::int`),
      );
      await expect.poll(() => db.load()).toEqual({ running: 2, waiting: 4 });
      expect(await rows).toHaveLength(6);
    });
  });
});
