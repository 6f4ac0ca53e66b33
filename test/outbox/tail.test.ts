/** Long polls at the end of the feed. */
import { expect, it } from 'vitest';
import { makeNotifier } from '../../src/daemon/workers/wake-up.ts';
import { makePartitions } from '../../src/db/partitions.ts';
import { makeTail } from '../../src/outbox/outbox.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { numberAll, openOutbox } from './rig.ts';

const clock = manualClock(Date.UTC(2026, 0, 10));
const database = await useDatabase();

/** The database, with the number of statements that were started on its pool. */
function counted() {
  const count = { statements: 0 };
  const db = {
    ...database.db,
    get sql() {
      count.statements++;
      return database.db.sql;
    },
  };
  return { db, count };
}

it('A hundred idle long polls read the feed once per wake-up, and all get the next event', async () => {
  await makePartitions(database.db, clock.now());
  const { emit } = openOutbox(database.db, clock);
  await emit('first');
  await numberAll(database.db);
  const { db, count } = counted();
  const feed = makeNotifier();
  const stopping = new AbortController();
  const tail = makeTail({ db, nextEvent: feed.wait, stopping: stopping.signal });
  const aborted = new AbortController().signal;
  const poll = (types: string[]) => tail.read({ cursor: '1', types, limit: 10 }, 20_000, aborted);
  const all = Array.from({ length: 100 }, () => poll([]));
  const others = [poll(['endpoint.*']), poll(['*']), poll(['wallet.*'])];
  for (let wakeUps = 1; wakeUps <= 5; wakeUps++) {
    await expect.poll(() => count.statements).toBe(wakeUps);
    feed.notify();
  }
  await expect.poll(() => count.statements).toBe(6);
  await emit('second');
  await numberAll(database.db);
  feed.notify();
  const pages = await Promise.all([...all, ...others.slice(0, 2)]);
  for (const { rows, cursor } of pages) {
    expect(rows.map(({ body }) => JSON.parse(body).data.endpoint_id)).toEqual(['second']);
    expect(cursor).toBe('2');
  }
  // A read of the bounds and one of the events, for all of them.
  expect(count.statements).toBeLessThanOrEqual(9);
  stopping.abort();
  expect(await others[2]).toEqual({ rows: [], cursor: '2', complete: true });
});

it('A long poll for a type gets it behind others, with its own limit', async () => {
  const { emit } = openOutbox(database.db, clock);
  const feed = makeNotifier();
  const tail = makeTail({
    db: database.db,
    nextEvent: feed.wait,
    stopping: new AbortController().signal,
  });
  const polls = [1, 2].map((limit) =>
    tail.read(
      { cursor: '2', types: ['endpoint.test'], limit },
      20_000,
      new AbortController().signal,
    ),
  );
  await emit('third', 'fourth', 'fifth');
  await numberAll(database.db);
  feed.notify();
  expect((await Promise.all(polls)).map(({ cursor, rows }) => [cursor, rows.length])).toEqual([
    ['3', 1],
    ['4', 2],
  ]);
});
