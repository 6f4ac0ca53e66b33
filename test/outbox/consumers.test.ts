/** Named consumers: what is handed out, to whom, and when again. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { pullOnce } from '../../src/outbox/consumers/window.ts';
import { findConsumerLag, makeConsumers, sequence } from '../../src/outbox/outbox.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { draft, numberAll, openOutbox } from './rig.ts';

const DAY_MS = 86_400_000;
const clock = manualClock(Date.UTC(2026, 0, 10));
const database = await useDatabase();
let transactions = 0;
const counted: typeof database.db = {
  ...database.db,
  begin(work, options) {
    transactions++;
    return database.db.begin(work, options);
  },
};
const consumers = makeConsumers({
  db: counted,
  clock,
  ids: makeIds(clock, systemRandom),
});
let names = 0;
let emit: (...subjects: string[]) => Promise<void>;

beforeAll(() => makePartitions(database.db, clock.now()));
beforeEach(() => {
  const opened = openOutbox(database.db, clock);
  emit = async (...subjects) => {
    await opened.emit(...subjects);
    await numberAll(database.db);
  };
});

/** A consumer of what comes, with shortcuts for its workers. */
async function make(more: { eventTypes?: string[]; from?: string; redeliverAfterS?: number } = {}) {
  const input = { eventTypes: ['*'], from: 'latest', redeliverAfterS: 30, ...more };
  const { id } = await consumers.createConsumer({ ...input, name: `c${names++}` }, 'ann');
  const request = { waitMs: 0, nextEvent: async () => {}, aborted: new AbortController().signal };
  return {
    id,
    pull: async (limit = 100) =>
      (await consumers.pull(id, { ...request, limit })).events.map((event) => ({
        ...event,
        subject: JSON.parse(event.body).data.endpoint_id as string,
        seq: JSON.parse(event.body).data.subject_seq as number,
      })),
    ack: (events: readonly { receipt: string }[]) =>
      consumers.acknowledge(
        id,
        events.map(({ receipt }) => receipt),
      ),
    release: (events: readonly { receipt: string }[]) =>
      consumers.release(
        id,
        events.map(({ receipt }) => receipt),
      ),
    seek: (to: string) => consumers.seek(id, to),
    show: () => consumers.getConsumer(id),
  };
}

const labels = (events: readonly { subject: string; seq: number }[]) =>
  events.map(({ subject, seq }) => `${subject}${seq}`);

it('What is acknowledged never comes again, and the position is before what is not', async () => {
  const one = await make();
  const { position } = await one.show();
  await emit('a', 'b', 'c');
  const pulled = await one.pull();
  expect(pulled.map(({ subject, redelivered }) => [subject, redelivered])).toEqual([
    ['a', 0],
    ['b', 0],
    ['c', 0],
  ]);
  const [, b, c] = pulled;
  expect(await one.ack([b, c].filter((event) => event !== undefined))).toEqual({
    acknowledged: 2,
    stale: [],
  });
  expect(await one.show()).toMatchObject({
    position,
    unacknowledged: 1,
    inFlight: 1,
    behind: 1,
    oldestEventAt: clock.now(),
  });
  await one.ack(pulled.slice(0, 1));
  expect(await one.show()).toMatchObject({
    position: position + 3n,
    unacknowledged: 0,
    behind: 0,
    oldestEventAt: null,
  });
  clock.advance(DAY_MS);
  expect(await one.pull()).toEqual([]);
});

it('What is not acknowledged in time comes again, as the same event with a count', async () => {
  const one = await make({ redeliverAfterS: 30 });
  await emit('d');
  const [first] = await one.pull();
  clock.advance(29_999);
  expect(await one.pull()).toEqual([]);
  clock.advance(1);
  const [again] = await one.pull();
  expect(again).toMatchObject({ body: first?.body, redelivered: 1 });
  expect(again?.receipt).not.toBe(first?.receipt);
});

it('A worker that is late with its acknowledgement ends nothing that another one has by now', async () => {
  const one = await make({ redeliverAfterS: 5 });
  await emit('late');
  await emit('late');
  const slow = (await one.pull(1)).slice(0, 1);
  clock.advance(5_000);
  const quick = await one.pull(1);
  expect(await one.ack(slow)).toEqual({
    acknowledged: 0,
    stale: slow.map(({ receipt }) => receipt),
  });
  // The second event of the subject still waits for the first.
  expect(await one.pull()).toEqual([]);
  expect((await one.ack(quick)).acknowledged).toBe(1);
  expect((await one.ack(quick)).stale).toHaveLength(1);
  expect(await one.pull()).toHaveLength(1);
});

it('An acknowledgement after the time counts if no other worker has the event yet', async () => {
  const one = await make({ redeliverAfterS: 5 });
  await emit('alone');
  const pulled = await one.pull();
  clock.advance(60_000);
  expect((await one.ack(pulled)).acknowledged).toBe(1);
  expect(await one.pull()).toEqual([]);
});

it('Events of a subject of which a worker has one wait, and those of others do not', async () => {
  const one = await make();
  await emit('x');
  await emit('x');
  await emit('y');
  const [first, ...none] = await one.pull(1);
  expect([first?.subject, none]).toEqual(['x', []]);
  expect(labels(await one.pull())).toEqual(['y1']);
  expect(await one.pull()).toEqual([]);
  await one.ack(first ? [first] : []);
  expect(labels(await one.pull())).toEqual(['x2']);
});

it('A pull that waits locks nothing while all that is read waits for one of its subject', async () => {
  const one = await make();
  await emit('lx', 'lx');
  const first = await one.pull(1);
  expect(labels(await one.pull())).toEqual([]);
  transactions = 0;
  expect(await one.pull()).toEqual([]);
  expect(transactions).toBe(0);
  await one.ack(first);
  expect(labels(await one.pull())).toEqual(['lx2']);
});

it('Events that wait for one of their subject keep a pull of few from no other subject', async () => {
  const one = await make();
  await emit('wx', 'wx', 'wx');
  const first = await one.pull(1);
  await emit('wy');
  // As many wait as are asked for; what is asked for is read from the feed nevertheless.
  expect(labels(await one.pull(2))).toEqual(['wy1']);
  expect(await one.show()).toMatchObject({ unacknowledged: 4, inFlight: 2 });
  await one.ack(first);
  expect(labels(await one.pull(1))).toEqual(['wx2']);
});

it('A pull reads on only while it reads: what it finds and cannot hand out ends it', async () => {
  const one = await make();
  await emit('rx', 'rx');
  expect(await one.pull(1)).toHaveLength(1);
  await emit('rx');
  // The body of one that is free is pruned, and it is all that is asked for.
  await emit('ry');
  const { sql } = database.owner;
  await sql`update tallyhook.consumed_events set subject = 'gone', event_id = gen_random_uuid()
    where consumer_id = ${one.id} and lease_until is null`;
  const read = database.db.begin((tx) => pullOnce(tx, one.id, { limit: 1, now: clock.now() }));
  expect(await read).toEqual({ events: [], redeliverAt: null, readsOn: false });
});

it('One pull may have several events of a subject, in order; so has their redelivery', async () => {
  const one = await make({ redeliverAfterS: 10 });
  for (const subject of ['p', 'q', 'p', 'p']) await emit(subject);
  const all = ['p1', 'q1', 'p2', 'p3'];
  expect(labels(await one.pull())).toEqual(all);
  clock.advance(10_000);
  expect(labels(await one.pull())).toEqual(all);
});

it('What is released comes again at once, but not beside a later event of its subject', async () => {
  const one = await make();
  for (const subject of ['r', 'r', 's']) await emit(subject);
  const pulled = await one.pull();
  expect(await one.release(pulled.slice(0, 1))).toEqual({ released: 1, stale: [] });
  expect(await one.pull()).toEqual([]);
  await one.release(pulled.slice(1));
  const again = await one.pull();
  expect(labels(again)).toEqual(['r1', 'r2', 's1']);
  expect(again.map(({ redelivered }) => redelivered)).toEqual([1, 1, 1]);
});

it.each([
  [['endpoint.*'], ['t1', 'u1']],
  [['endpoint.test'], ['t1', 'u1']],
  [['*'], ['t1', undefined, 'u1']],
  [['wallet.observed'], [undefined]],
  [['token.*'], []],
])('A consumer of %j gets these, and passes the others', async (eventTypes, expected) => {
  const one = await make({ eventTypes });
  const { emitDrafts } = openOutbox(database.db, clock);
  const wallet = { addr: 'w', current: { balance: '1', status: 1 } };
  const suffix = String(names);
  await emit(`t${suffix}`);
  await emitDrafts(draft(`wallet:${suffix}`, { type: 'wallet.observed', data: wallet }));
  await emit(`u${suffix}`);
  const pulled = await one.pull();
  expect(
    pulled.map(({ subject, seq }) => subject && `${subject.replace(suffix, '')}${seq}`),
  ).toEqual(expected);
  await one.ack(pulled.length > 0 ? pulled : [{ receipt: '0.1.1' }]);
  expect(await one.show()).toMatchObject({ behind: 0, oldestEventAt: null });
});

it('At most 1,000 events are read and not acknowledged, and a full window stops no worker', async () => {
  const one = await make();
  const many = Array.from({ length: 1_300 }, (_, n) => `m${n}`);
  await emit(...many);
  const first = await one.pull(500);
  expect(await one.pull(500)).toHaveLength(500);
  expect(await one.pull(500)).toEqual([]);
  expect(await one.show()).toMatchObject({ unacknowledged: 1_000, inFlight: 1_000, behind: 1_300 });
  await one.ack(first);
  expect(labels(await one.pull(500))).toEqual(many.slice(1_000).map((name) => `${name}1`));
  expect(await one.show()).toMatchObject({ unacknowledged: 800, behind: 800 });
});

it('A pull ends at 4 MiB, and the next one goes on', async () => {
  const one = await make();
  const large = (n: number) =>
    draft(`big${n}`, { data: { endpoint_id: `${n}`, reason: 'x'.repeat(1_500_000), url: '' } });
  await openOutbox(database.db, clock).emitDrafts(...[1, 2, 3, 4, 5].map(large));
  await sequence(database.db);
  expect((await one.pull()).map(({ subject }) => subject)).toEqual(['1', '2', '3']);
  expect((await one.pull()).map(({ subject }) => subject)).toEqual(['4', '5']);
});

it('A seek goes back or forth, and every receipt from before it is stale', async () => {
  const one = await make();
  const { position } = await one.show();
  await emit('v', 'w');
  const pulled = await one.pull();
  expect(await one.seek('latest')).toMatchObject({ behind: 0, unacknowledged: 0 });
  expect(await one.ack(pulled)).toMatchObject({ acknowledged: 0 });
  expect(await one.seek(position.toString())).toMatchObject({ behind: 2 });
  const again = await one.pull();
  expect(labels(again)).toEqual(labels(pulled));
  expect(await one.ack(pulled)).toMatchObject({ acknowledged: 0 });
  expect(await one.ack(again)).toMatchObject({ acknowledged: 2 });
  const ahead = (position + 3n).toString();
  await expect(one.seek(ahead)).rejects.toMatchObject({ code: 'invalid_cursor' });
});

it('A consumer from the oldest event gets all; names are unique to an owner, who has 100', async () => {
  const input = { eventTypes: ['*'], redeliverAfterS: 60 };
  const create = (name: string, owner: string, from = 'latest') =>
    consumers.createConsumer({ ...input, name, from }, owner);
  const { behind } = await create('all', 'bob', 'oldest');
  expect(behind).toBeGreaterThan(1_300);
  await expect(create('all', 'bob')).rejects.toMatchObject({ code: 'conflict' });
  for (let n = 1; n < 100; n++) await create(`n${n}`, 'bob');
  await expect(create('one more', 'bob')).rejects.toMatchObject({ code: 'conflict' });
  const other = await create('all', 'eve');
  await consumers.deleteConsumer(other.id);
  await expect(consumers.getConsumer(other.id)).rejects.toMatchObject({ code: 'not_found' });
  await expect(consumers.deleteConsumer(other.id)).rejects.toMatchObject({ code: 'not_found' });
});

it('An owner who creates many consumers at once has 100 of them', async () => {
  const input = { eventTypes: ['*'], redeliverAfterS: 60, from: 'latest' };
  const names = Array.from({ length: 110 }, (_, n) => `at-once-${n}`);
  const made = await Promise.allSettled(
    names.map((name) => consumers.createConsumer({ ...input, name }, 'zoe')),
  );
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(100);
  const page = { owner: 'zoe', after: '', limit: 200 };
  expect(await consumers.listConsumers(page)).toHaveLength(100);
});

it('Behind retention a pull is refused with a count until a seek, and what was read is counted', async () => {
  await database.owner.sql`delete from tallyhook.consumers`;
  const [unread, unacknowledged] = [await make(), await make()];
  await emit('o1', 'o2', 'o3');
  expect(await unacknowledged.pull()).toHaveLength(3);
  clock.advance(40 * DAY_MS);
  await emit('fresh');
  const keep = { events: 30, observations: 30, deliveries: 30, attempts: 30 };
  await dropPartitions(database.db, clock.now() + 20 * DAY_MS, keep);
  await expect(unread.pull()).rejects.toMatchObject({
    code: 'cursor_expired',
    members: { missed: 3 },
  });
  expect(await unread.show()).toMatchObject({ state: 'expired', missed: 0 });
  expect(await findConsumerLag(database.db)).toMatchObject({ count: 2, expired: 1, behind: 4 });
  expect(await unread.seek('oldest')).toMatchObject({ state: 'active', missed: 3 });
  for (const one of [unread, unacknowledged]) {
    expect(labels(await one.pull())).toEqual(['fresh1']);
    expect(await one.show()).toMatchObject({ state: 'active', missed: 3, unacknowledged: 1 });
  }
});

it('With every event pruned a consumer goes on with what comes', async () => {
  const one = await make();
  await emit('gone');
  const keep = { events: 30, observations: 30, deliveries: 30, attempts: 30 };
  await dropPartitions(database.db, clock.now() + 400 * DAY_MS, keep);
  await expect(one.pull()).rejects.toMatchObject({ code: 'cursor_expired' });
  await one.seek('oldest');
  await emit('next');
  expect(labels(await one.pull())).toEqual(['next1']);
});
