/** Long reads on a replica: a standby of Debian's Postgres, where it is installed. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeReads, type Reads } from '../../src/db/access/replica.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { freePort } from '../harness/listen.ts';
import { openServers, type Servers } from '../harness/replicated-servers.ts';
import { textLog } from '../upstream/rig.ts';

const BIN = '/usr/lib/postgresql/15/bin';

describe('A long read', () => {
  if (!existsSync(BIN)) {
    it('Replicas are not tested without another Postgres: apt-get install postgresql-15', () => {
      expect(existsSync(BIN)).toBe(false);
    });
    return;
  }
  let servers: Servers;
  const opened: Db[] = [];
  const { log, logged } = textLog();

  const open = (url: string): Db => {
    const db = connect({ url, max: 2, deadlineMs: 10_000 });
    opened.push(db);
    return db;
  };
  /** Which server answers a read, and how many rows it sees. */
  const read = (reads: Reads) =>
    reads.begin(async ({ sql }) => {
      const [row] = await sql<{ standby: boolean; rows: number }[]>`
        select pg_is_in_recovery() as standby, (select count(*)::int from written) as rows`;
      return row;
    });

  let primary: Db;
  let standby: Db;
  let reads: Reads;
  beforeAll(async () => {
    servers = await openServers(BIN, false);
    primary = open(servers.url);
    standby = open(servers.standbyUrl);
    reads = makeReads({ primary, replica: standby, log, catchUpMs: 3_000 });
    await primary.sql`create table written (n int)`;
  }, 60_000);
  afterAll(async () => {
    await Promise.all(opened.map((db) => db.end()));
    await servers.close();
  });

  it('uses the replica, which then has all that was committed before', async () => {
    for (let rows = 1; rows <= 20; rows++) {
      await primary.sql`insert into written values (${rows})`;
      expect(await read(reads)).toEqual({ standby: true, rows });
    }
    expect(logged.text).toBe('');
  });

  it('without a replica, or with one that is away, uses the primary', async () => {
    expect(await read(makeReads({ primary, replica: undefined, log, catchUpMs: 0 }))).toMatchObject(
      {
        standby: false,
      },
    );
    const nowhere = open(`postgres://postgres@127.0.0.1:${await freePort()}/postgres`);
    expect(await read(makeReads({ primary, replica: nowhere, log, catchUpMs: 0 }))).toMatchObject({
      standby: false,
    });
    expect(logged.text).toContain('the replica of DATABASE_READ_URL cannot be used');
  });

  it('logs a problem of the replica once, and when it is used again', async () => {
    const own = textLog();
    const deps = { primary, replica: standby, log: own.log, catchUpMs: 0 };
    expect(await makeReads({ ...deps, replica: undefined }).usesReplica()).toBe(false);
    const reader = makeReads(deps);
    await expect.poll(() => makeReads({ ...deps, log }).usesReplica()).toBe(true);
    await standby.sql`select pg_wal_replay_pause()`;
    await primary.sql`update written set n = n`;
    for (let n = 0; n < 3; n++) expect(await reader.usesReplica()).toBe(false);
    expect(await read(reader)).toMatchObject({ standby: false });
    await standby.sql`select pg_wal_replay_resume()`;
    await expect.poll(() => reader.usesReplica()).toBe(true);
    expect(own.logged.text.match(/"msg":"[^"]*/g)).toEqual([
      '"msg":"the replica of DATABASE_READ_URL cannot be used; reading the primary',
      '"msg":"the replica of DATABASE_READ_URL is used again',
    ]);
  });

  it('waits for a replica that is behind', async () => {
    await standby.sql`select pg_wal_replay_pause()`;
    await primary.sql`insert into written values (21)`;
    const waiting = read(reads);
    await standby.sql`select pg_wal_replay_resume()`;
    expect(await waiting).toEqual({ standby: true, rows: 21 });
  });

  it('uses the primary when the replica stays behind, or was promoted', async () => {
    await standby.sql`select pg_wal_replay_pause()`;
    await primary.sql`insert into written values (22)`;
    expect(await read(reads)).toEqual({ standby: false, rows: 22 });
    expect(logged.text).toContain('behind');
    await standby.sql`select pg_promote()`;
    expect(await read(reads)).toEqual({ standby: false, rows: 22 });
    expect(logged.text).toContain('it is not a replica');
  }, 60_000);
});
