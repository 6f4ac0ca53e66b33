/** The outbox as a change stream, read with Debian's pg_recvlogical as docs/apps.md says. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { makePartitions } from '../../src/db/partitions.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { findEvent, findTombstone, removeBodies } from '../../src/outbox/outbox.ts';
import { runCommand } from '../harness/command.ts';
import { useFolder } from '../harness/folder.ts';
import {
  DEBIAN_BIN,
  type PasswordServer,
  startPasswordServer,
} from '../harness/postgres-programs.ts';
import { execute } from '../harness/temporary-server.ts';
import { draft, openOutbox } from '../outbox/rig.ts';
import { type Change, changesOf } from './pgoutput.ts';

const run = promisify(execFile);
const PASSWORD = 'of-the-test';
const folder = useFolder();
let server: PasswordServer;
let writer: Db;
let owner: Db;
let cdcUrl: string;

beforeAll(async () => {
  server = await startPasswordServer(PASSWORD, 'wal_level = logical\n');
  await migrate(server.url);
  await execute(server.url, `create role cdc login replication password '${PASSWORD}'`);
  cdcUrl = server.url.replace('//postgres:', '//cdc:');
  writer = connect({ url: server.url, role: WRITER, max: 2 });
  owner = connect({ url: server.url, max: 1 });
  await makePartitions(writer, systemClock.now());
});
afterAll(async () => {
  await writer?.end();
  await owner?.end();
  await server?.close();
});

const receive = (...args: string[]) =>
  run(join(DEBIAN_BIN, 'pg_recvlogical'), ['-d', cdcUrl, '--slot', 'cdc', ...args]);

/** What the slot has until now. */
async function readSlot(name: string): Promise<Change[]> {
  const [row] = await owner.sql<{ end: string }[]>`select pg_current_wal_insert_lsn()::text as end`;
  const file = join(folder, name);
  const options = ['-o', 'proto_version=1', '-o', 'publication_names=tallyhook_events'];
  const end = ['--endpos', row?.end ?? '', '--no-loop'];
  // A record after that position ends it.
  await owner.sql`select pg_logical_emit_message(true, 'test', 'end')`;
  await receive('--start', ...options, ...end, '-f', file);
  return changesOf(await readFile(file));
}

/** The body, from the row alone, as docs/apps.md says. */
function bodyOf({ row }: Change, names: readonly string[]): Record<string, unknown> {
  const lines = (row.data ?? '').split('\n');
  const subject = row.subject ?? '';
  const memberOf = (line = '') => {
    if (line === '$') return subject.slice(subject.indexOf(':') + 1);
    return line === '' ? null : JSON.parse(line);
  };
  const members = names.map((name, n) => [name, memberOf(lines[n])]);
  return { ...Object.fromEntries(members), subject_seq: Number(row.subject_seq) };
}

it('A reader of the publication gets each event in order, and can make its body', async () => {
  const published = await runCommand({ DATABASE_URL: server.url }, 'db', 'publish-events');
  expect(published.code).toBe(0);
  const again = await runCommand({ DATABASE_URL: server.url }, 'db', 'publish-events', '--json');
  expect(JSON.parse(again.text)).toEqual({
    publication: 'tallyhook_events',
    wal_level: 'logical',
  });
  await receive('--create-slot', '--plugin', 'pgoutput');
  const { emit, emitDrafts } = openOutbox(writer, systemClock);
  const wallet = { addr: 'w', current: { balance: '9007199254740993', status: 1 } };
  const events = [
    ...(await emit('a', 'b')),
    ...(await emit('a')),
    ...(await emitDrafts(draft('wallet:w', { type: 'wallet.observed', data: wallet }))),
  ];
  const changes = await readSlot('first');
  const shapes = new Map(
    changes
      .filter(({ table }) => table === 'event_shapes')
      .map(({ row }) => [row.id, (row.names ?? '').slice(1, -1).split(',')]),
  );
  const rows = changes.filter(({ table }) => table === 'events');
  expect(rows.map(({ kind, row }) => `${kind} evt_${row.id}`)).toEqual(
    events.map(({ id }) => `insert ${id}`),
  );
  for (const change of rows) {
    const stored = JSON.parse((await findEvent(writer, `evt_${change.row.id}`)) ?? '{}');
    expect(bodyOf(change, shapes.get(change.row.shape) ?? [])).toEqual(stored.data);
  }
});

it('A reader makes the body of a row by a query, with the rights that the docs name', async () => {
  for (const statement of [
    'grant usage on schema tallyhook to cdc',
    'grant select on tallyhook.events, tallyhook.event_shapes to cdc',
    'grant execute on function tallyhook.event_body to cdc',
  ])
    await execute(server.url, statement);
  const reader = connect({ url: cdcUrl, max: 1 });
  const rows = await reader.sql<{ id: string; body: string }[]>`
    select 'evt_' || id as id, tallyhook.event_body(e) as body from tallyhook.events e
    order by recorded_at, id`;
  await reader.end();
  expect(rows.length).toBeGreaterThan(3);
  for (const { id, body } of rows) expect(body).toBe(await findEvent(writer, id));
});

it('What was acknowledged is not read again, and an event is published once', async () => {
  const { emit } = openOutbox(writer, systemClock);
  const [event] = await emit('later');
  const changes = await readSlot('second');
  const ids = changes.flatMap(({ table, row }) => (table === 'events' ? [`evt_${row.id}`] : []));
  expect(ids.at(-1)).toBe(event?.id);
  expect(new Set(ids).size).toBe(ids.length);
});

it('The removal of a body is an update, from which a reader makes what is left', async () => {
  const { emit } = openOutbox(writer, systemClock);
  const [event] = await emit('removed');
  await readSlot('third');
  const now = systemClock.now();
  await writer.begin(async (tx) => {
    const stored = await findTombstone(tx, event?.id ?? '');
    await removeBodies(tx, stored ? [stored] : [], now);
  });
  const changes = await readSlot('fourth');
  const [shape, change, ...others] = changes;
  expect([shape?.table, change?.kind, change?.row.id, others]).toEqual([
    'event_shapes',
    'update',
    event?.id.slice(4),
    [],
  ]);
  const names = (shape?.row.names ?? '').slice(1, -1).split(',');
  const stored = JSON.parse((await findEvent(writer, event?.id ?? '')) ?? '{}');
  expect(change && bodyOf(change, names)).toEqual(stored.data);
  expect(stored.data).toMatchObject({ body_removed_at: new Date(now).toISOString() });
});
