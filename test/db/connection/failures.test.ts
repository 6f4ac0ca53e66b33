/** Connections that cannot be opened, and those that end while the driver writes. */
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { reach } from '../../../src/db/access/reach.ts';
import { connect } from '../../../src/db/connect.ts';
import { openSocket } from '../../../src/db/connection/open-socket.ts';
import { parseConnection } from '../../../src/db/connection/settings.ts';
import { isOutage, toDatabaseError } from '../../../src/db/sqlstate.ts';
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { useDatabase } from '../../harness/database.ts';
import { useFolder } from '../../harness/folder.ts';
import { freePort, listen } from '../../harness/listen.ts';

const folder = useFolder();
const database = await useDatabase();

describe('A database that cannot be reached is an outage, and no error of a statement', () => {
  const urls = {
    'a folder without a socket': () => `postgres://ada:x@/books?host=${folder}`,
    'a folder that is none': () => `postgres://ada:x@/books?host=${join(folder, 'none')}`,
    'a certificate that is away while it is renewed': () =>
      'postgres://ada:x@localhost:1/books?sslmode=require&sslcert=/no&sslkey=/no',
    'an address that no interface has': () =>
      'postgres://ada:x@localhost:1/books?hostaddr=240.0.0.1',
  };
  it.each(Object.entries(urls))('%s', async (_, url) => {
    const db = connect({ url: url(), max: 1 });
    const error = await db.single(({ sql }) => sql`select 1`).catch((error: unknown) => error);
    await db.end(0);
    expect(isOutage(error), String(error)).toBe(true);
    expect(toDatabaseError(error)).toMatchObject({ name: 'DatabaseError' });
  });
});

it('A socket that is not there yet is waited for', async () => {
  const lines: string[] = [];
  const url = `postgres://ada:x@/books?host=${folder}`;
  const reached = reach({ variable: 'DATABASE_URL', url }, 1_000, (line) => lines.push(line));
  await expect(reached).rejects.toMatchObject({ code: 'database_unavailable' });
  expect(lines).toEqual([expect.stringContaining('DATABASE_URL: no Postgres answers at /')]);
});

it('While nothing answers, connections are tried less and less often', async () => {
  const db = connect({ url: `postgres://ada:x@127.0.0.1:${await freePort()}/books`, max: 1 });
  const startedAt = monotonicMs();
  for (let n = 0; n < 5; n++) await db.sql`select 1`.catch(() => {});
  expect(monotonicMs() - startedAt).toBeGreaterThan(1_000);
  await db.end(0);
});

it('A pool that was closed opens no connection', async () => {
  const server = createServer();
  let count = 0;
  server.on('connection', (socket) => {
    count++;
    socket.destroy();
  });
  const port = await listen(server);
  const settings = parseConnection(`postgres://ada:x@127.0.0.1:${port}/books`);
  const found = { host: [], port: [], user: 'ada', pass: 'x', database: 'books' };
  const socket = await openSocket(settings, found, {}, AbortSignal.abort());
  const failed = await new Promise((resolve) => socket.once('error', resolve));
  expect(failed).toMatchObject({ code: 'CONNECTION_ENDED' });
  expect(count).toBe(0);
  server.close();
});

/** What is written as a connection ends stays in the driver, before the login of the next one. */
it('Connections that end together are all used again at once', async () => {
  const { hostname, port, username, password, pathname } = new URL(database.url);
  const near: Socket[] = [];
  const server = createServer((socket) => {
    const far = connectTcp(Number(port), hostname);
    near.push(socket);
    for (const one of [socket, far]) one.on('error', () => {}).on('close', () => far.destroy());
    socket.pipe(far).pipe(socket);
  });
  const at = `127.0.0.1:${await listen(server)}`;
  const db = connect({ url: `postgres://${username}:${password}@${at}${pathname}`, max: 6 });
  const all = Array.from({ length: 6 });
  const answers = () =>
    Promise.allSettled(all.map(async () => (await db.sql`select pg_sleep(0.1)`).length));
  for (const _ of [1, 2, 3, 4]) {
    await answers();
    const busy = all.slice(3).map(() => db.sql`select pg_sleep(20)`.catch(() => db.sql`select 1`));
    await db.sql`select pg_sleep(0.1)`;
    for (const socket of near.splice(0)) socket.destroy();
    await Promise.allSettled(busy);
    await answers();
  }
  expect(await answers()).toEqual(all.map(() => ({ status: 'fulfilled', value: 1 })));
  await db.end(0);
  server.close();
}, 20_000);
