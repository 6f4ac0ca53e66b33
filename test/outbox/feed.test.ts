/** The pull feed: in order, without gaps, from any cursor that is still kept. */
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts';
import { readFeed, sequence } from '../../src/outbox/outbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { draft, openOutbox } from './outbox-parts.ts';

const clock = manualClock(Date.UTC(2026, 0, 10));
let database: TestDatabase;
let emit: ReturnType<typeof openOutbox>['emit'];

const read = (cursor: string, limit = 100, types: string[] = []) =>
  readFeed(database.db, { cursor, types, limit });
const subjects = (bodies: string[]) => bodies.map((body) => JSON.parse(body).data.endpoint_id);
const DAY_MS = 86_400_000;
const keep = { events: 30, observations: 30, deliveries: 30, attempts: 30 };

beforeAll(async () => {
  database = await createDatabase();
  await makePartitions(database.db, clock.now());
  const opened = openOutbox(database.db, clock);
  emit = opened.emit;
  // Seven of January, the third of another type; then three of February.
  for (const name of ['s1', 's2']) await emit(name);
  await database.db.begin((tx) =>
    opened.outbox.emit(tx, [
      draft('s3', {
        type: 'wallet.observed',
        data: { addr: 's3', current: { balance: '1', status: 1 } },
      }),
    ]),
  );
  for (const name of ['s4', 's5', 's6', 's7']) await emit(name);
  await sequence(database.db);
});
afterAll(() => database.drop());

describe('The feed', () => {
  test('Gives everything in order, and a cursor after which there is nothing', async () => {
    const page = await read('');
    expect(page.bodies.map((body) => JSON.parse(body).data.subject_seq)).toHaveLength(7);
    expect(page.cursor).toBe('7');
    expect(await read('7')).toEqual({ bodies: [], cursor: '7' });
  });

  test('In pages of any size gives the same, each once', async () => {
    const whole = (await read('')).bodies;
    for (const limit of [1, 2, 3, 6, 7, 8]) {
      const all: string[] = [];
      let cursor = '';
      for (;;) {
        const page = await read(cursor, limit);
        all.push(...page.bodies);
        cursor = page.cursor;
        if (page.bodies.length < limit) break;
      }
      expect(all).toEqual(whole);
    }
  });

  test('Gives the same bytes every time', async () => {
    expect(await read('2', 3)).toEqual(await read('2', 3));
  });

  it.each([
    [['wallet.observed'], 1],
    [['wallet.*'], 1],
    [['endpoint.*'], 6],
    [['endpoint.test', 'wallet.observed'], 7],
    [['token.*'], 0],
  ])('Of %j alone gives %i, and moves past the rest', async (types, count) => {
    const page = await read('', 100, types);
    expect(page.bodies).toHaveLength(count);
    expect(page.cursor).toBe('7');
  });

  it.each(['x', '-1', '1.5', ' 1', '1e3', '9'.repeat(19), '8', "1' or '1'='1"])(
    'Refuses the cursor %j',
    async (cursor) => {
      await expect(read(cursor)).rejects.toMatchObject({ code: 'invalid_cursor' });
    },
  );

  test('Does not give what has no number yet', async () => {
    await emit('fresh');
    expect((await read('7')).bodies).toEqual([]);
    await sequence(database.db);
    const page = await read('7');
    expect([subjects(page.bodies), page.cursor]).toEqual([['fresh'], '8']);
  });

  test('Answers cursor_expired for what was pruned, and starts from the oldest kept', async () => {
    clock.set(Date.UTC(2026, 1, 10));
    for (const name of ['f1', 'f2']) await emit(name);
    await sequence(database.db);
    await dropPartitions(database.db, Date.UTC(2026, 1, 1) + 30 * DAY_MS, keep);
    for (const cursor of ['0', '1', '7'])
      await expect(read(cursor)).rejects.toMatchObject({ code: 'cursor_expired', status: 410 });
    expect(subjects((await read('8')).bodies)).toEqual(['f1', 'f2']);
    expect(subjects((await read('')).bodies)).toEqual(['f1', 'f2']);
  });

  test('With nothing kept at all still says that something was lost', async () => {
    await dropPartitions(database.db, Date.UTC(2027, 0, 1), keep);
    await expect(read('9')).rejects.toMatchObject({ code: 'cursor_expired' });
    expect(await read('10')).toEqual({ bodies: [], cursor: '10' });
    expect(await read('')).toEqual({ bodies: [], cursor: '10' });
  });
});
