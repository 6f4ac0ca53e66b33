/** What apps get while Postgres refuses work, or is away, and what the log says of it. */
import postgres from 'postgres';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { type Rig, setUpGateway } from './rig.ts';

const { database, open } = await setUpGateway();
const sql = database.owner.sql;
/** Connected to another database. */
const server = postgres(inject('serverUrl'), { max: 1 });
afterAll(() => server.end());

const UNAVAILABLE = {
  status: 503,
  json: { code: 'database_unavailable' },
  headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
};

/** Several writes and reads, none of which is sent or logged by itself. */
async function expectUnavailable(rig: Rig, linesMax = 1) {
  for (let n = 0; n < 5; n++) expect(await rig.give()).toMatchObject(UNAVAILABLE);
  expect(rig.requests).toEqual([]);
  const lines = rig.logged.text.split('\n').filter((line) => /"level":"(warn|error)"/.test(line));
  expect(lines.length, rig.logged.text).toBeLessThanOrEqual(linesMax);
}

describe('A Postgres that refuses work', () => {
  it.each([
    ['its disk is full', '53100'],
    ['it has no memory', '53200'],
    ['a limit is reached', '53400'],
    ['it is read-only', '25006'],
    ['a file cannot be read', '58030'],
    ['it shuts down', '57P01'],
    ['its database is dropped', '57P04'],
    ['a lock is not free', '55P03'],
    ['a statement takes too long', '57014'],
    ['transactions conflict without end', '40001'],
  ])('When %s (%s), apps get 503 with Retry-After, and the log one line', async (_, code) => {
    const rig = await open();
    await sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'refused' using errcode = '${code}'; end $$;
      create trigger refuse before insert on tallyhook.operations execute function refuse()`);
    try {
      await expectUnavailable(rig);
    } finally {
      await sql.unsafe('drop function refuse cascade');
    }
    expect((await rig.give()).status).toBe(200);
  });

  it.each([
    ['accepts no connections', 'database', 'allow_connections off', 'allow_connections on'],
    ['has no connection left', 'database', 'connection limit 0', 'connection limit -1'],
    [
      'is read-only',
      'role',
      'set default_transaction_read_only = on',
      'reset default_transaction_read_only',
    ],
  ])('A database that %s is unavailable until it changes', async (_, kind, away, back) => {
    const name = new URL(database.url).pathname.slice(1);
    const role = `plain_${name}`;
    await sql.unsafe(`create role ${role} login password 'plain' in role ${WRITER}`);
    const login = Object.assign(new URL(database.url), { username: role, password: 'plain' });
    const db = connect({ url: login.href, role: WRITER, max: 2 });
    const rig = await open({ db });
    const change = async (to: string) => {
      await server.unsafe(`alter ${kind} ${kind === 'role' ? role : name} ${to}`);
      await server`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = ${role}`;
    };
    try {
      await change(away);
      await expectUnavailable(rig);
      await change(back);
      await expect.poll(async () => (await rig.give()).status).toBe(200);
    } finally {
      await db.end(0);
      await sql.unsafe(`drop role ${role}`);
    }
  });
});
