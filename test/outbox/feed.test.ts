/** The pull feed. */
import { beforeAll, expect, it } from 'vitest';
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts';
import { readFeed, sequence } from '../../src/outbox/outbox.ts';
import { EVENT_TYPES, patternsOf } from '../../src/resources/delivery/events.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { draft, openOutbox } from './rig.ts';

const clock = manualClock(Date.UTC(2026, 0, 10));
const database = await useDatabase();
let emit: ReturnType<typeof openOutbox>['emit'];

const read = (cursor: string, limit = 100, types: string[] = []) =>
  readFeed(database.db, { cursor, types, limit }).then(({ rows, cursor: next }) => ({
    bodies: rows.map(({ body }) => body),
    cursor: next,
  }));
const subjects = (bodies: string[]) => bodies.map((body) => JSON.parse(body).data.endpoint_id);
const DAY_MS = 86_400_000;
const retention = { events: 30, observations: 30, deliveries: 30, attempts: 30 };

beforeAll(async () => {
  await makePartitions(database.db, clock.now());
  const opened = openOutbox(database.db, clock);
  emit = opened.emit;
  // Seven events in January, the third of another type. Later tests add three in February.
  for (const name of ['s1', 's2']) await emit(name);
  const data = { addr: 's3', current: { balance: '1', status: 1 } };
  await opened.emitDrafts(draft('s3', { type: 'wallet.observed', data }));
  for (const name of ['s4', 's5', 's6', 's7']) await emit(name);
  await sequence(database.db);
});

it('The feed returns all events in order, and the cursor after the last', async () => {
  const page = await read('');
  const names = ['s1', 's2', undefined, 's4', 's5', 's6', 's7'];
  expect(subjects(page.bodies)).toEqual(names);
  expect(page.cursor).toBe('7');
  expect(await read('7')).toEqual({ bodies: [], cursor: '7' });
});

it.each([1, 2, 3, 6, 7, 8])('Pages of %i return the same events, each once', async (limit) => {
  const all: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await read(cursor, limit);
    all.push(...page.bodies);
    cursor = page.cursor;
    if (page.bodies.length < limit) break;
  }
  expect(all).toEqual((await read('')).bodies);
});

it.each([
  [['wallet.observed'], 1],
  [['wallet.*'], 1],
  [['endpoint.*'], 6],
  [['endpoint.test', 'wallet.observed'], 7],
  [['token.*'], 0],
  [['*'], 7],
])('Types %j select %i events, and the cursor passes the others', async (types, count) => {
  const page = await read('', 100, types);
  expect(page.bodies).toHaveLength(count);
  expect(page.cursor).toBe('7');
});

it.each(['x', '-1', '1.5', ' 1', '1e3', '9'.repeat(19), '8', "1' or '1'='1"])(
  'Cursor %j is refused',
  async (cursor) => {
    await expect(read(cursor)).rejects.toMatchObject({ code: 'invalid_cursor' });
  },
);

it('The patterns that match a type are the same in SQL', async () => {
  const rows = await database.db.sql<{ type: string; patterns: string[] }[]>`
    select type, tallyhook.patterns_of(type) as patterns
    from unnest(${[...EVENT_TYPES, 'one']}::text[]) as type`;
  for (const { type, patterns } of rows) expect(patterns).toEqual(patternsOf(type));
  expect(rows).toHaveLength(EVENT_TYPES.length + 1);
});

it('An event appears once it has a number', async () => {
  await emit('fresh');
  expect((await read('7')).bodies).toEqual([]);
  await sequence(database.db);
  const page = await read('7');
  expect([subjects(page.bodies), page.cursor]).toEqual([['fresh'], '8']);
});

it('A cursor before pruned events is expired; without one the feed starts after them', async () => {
  clock.set(Date.UTC(2026, 1, 10));
  for (const name of ['f1', 'f2']) await emit(name);
  await sequence(database.db);
  await dropPartitions(database.db, Date.UTC(2026, 1, 1) + 30 * DAY_MS, retention);
  for (const cursor of ['0', '1', '7'])
    await expect(read(cursor)).rejects.toMatchObject({ code: 'cursor_expired', status: 410 });
  expect(subjects((await read('8')).bodies)).toEqual(['f1', 'f2']);
  expect(subjects((await read('')).bodies)).toEqual(['f1', 'f2']);
});

it('With every event pruned, an older cursor still fails with cursor_expired', async () => {
  await dropPartitions(database.db, Date.UTC(2027, 0, 1), retention);
  await expect(read('9')).rejects.toMatchObject({ code: 'cursor_expired' });
  expect(await read('10')).toEqual({ bodies: [], cursor: '10' });
  expect(await read('')).toEqual({ bodies: [], cursor: '10' });
});

it('A page of large events is cut at 4 MiB and continues without a gap', async () => {
  const large = (n: number) =>
    draft(`large ${n}`, { data: { endpoint_id: `${n}`, reason: 'x'.repeat(1_500_000), url: '' } });
  const { cursor } = await read('');
  await openOutbox(database.db, clock).emitDrafts(...[1, 2, 3, 4, 5, 6, 7].map(large));
  await sequence(database.db);
  const first = await read(cursor);
  const second = await read(first.cursor);
  expect([first, second].map(({ bodies }) => subjects(bodies))).toEqual([
    ['1', '2', '3'],
    ['4', '5', '6'],
  ]);
  const third = await read(second.cursor);
  expect(subjects(third.bodies)).toEqual(['7']);
  expect(await read(third.cursor)).toEqual({ bodies: [], cursor: third.cursor });
});
