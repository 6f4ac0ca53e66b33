/** Emitting events, and the sequencer that numbers them. */
import { beforeEach, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { must } from '../../src/kernel/errors.ts';
import { uuidOf } from '../../src/kernel/ids.ts';
import { jsonText } from '../../src/kernel/json.ts';
import { countUnnumbered, sequence } from '../../src/outbox/outbox.ts';
import { EVENTS, isEventPattern } from '../../src/resources/delivery/events.ts';
import { useDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { addBrokenEndpoint, draft, numberAll, openOutbox } from './rig.ts';

const database = await useDatabase();
let clock: ManualClock;
beforeEach(() => {
  clock = manualClock();
});

interface Row {
  subject: string;
  subjectSeq: bigint;
  seq: bigint | null;
  body: string;
}
const rowsOf = (pattern: string) => database.owner.sql<Row[]>`
  select e.subject, e.subject_seq, f.seq, tallyhook.event_body(e) as body
  from tallyhook.events e
  left join (select first_seq + n - 1 as seq, id from tallyhook.numbered_events,
    unnest(ids) with ordinality as x(id, n)) f on f.id = e.id
  where e.subject like ${pattern} order by seq, subject, subject_seq`;

const upTo = (n: number) => Array.from({ length: n }, (_, i) => BigInt(i + 1));

it('Concurrent producers number the events of each subject from 1 without a gap', async () => {
  const { emit } = openOutbox(database.db, clock);
  const subjects = ['many:a', 'many:b', 'many:c'];
  await Promise.all(
    Array.from({ length: 60 }, (_, i) => emit(subjects[i % 3] ?? '', subjects[(i + 1) % 3] ?? '')),
  );
  for (const subject of subjects) {
    const numbers = (await rowsOf(subject)).map((row) => row.subjectSeq);
    expect(numbers.toSorted((a, b) => Number(a - b))).toEqual(upTo(40));
  }
});

it('The counter of a subject ends with its last event, which continues its numbers', async () => {
  const { emit, emitDrafts } = openOutbox(database.db, clock);
  const last = (subject: string) => draft(subject, { last: true });
  await emit('ends:a', 'ends:b', 'ends:a');
  await emitDrafts(last('ends:a'), last('ends:only'), draft('ends:b'), last('ends:a'));
  const numbers = async (subject: string) =>
    (await rowsOf(subject)).map((row) => row.subjectSeq).sort();
  expect(await numbers('ends:a')).toEqual([1n, 2n, 3n, 4n]);
  expect(await numbers('ends:only')).toEqual([1n]);
  expect(await numbers('ends:b')).toEqual([1n, 2n]);
  const counters = await database.owner.sql`
    select subject, last_seq from tallyhook.subjects where subject like 'ends:%'`;
  expect(counters).toEqual([{ subject: 'ends:b', lastSeq: 2n }]);
});

it('A transaction that fails leaves no event and no gap', async () => {
  const { outbox, emit } = openOutbox(database.db, clock);
  await emit('undone');
  const boom = new Error('undone');
  const failed = database.db.begin(async (tx) => {
    await outbox.emit(tx, [draft('undone'), draft('undone')]);
    throw boom;
  });
  await expect(failed).rejects.toBe(boom);
  await emit('undone');
  expect((await rowsOf('undone')).map((row) => row.subjectSeq)).toEqual([1n, 2n]);
});

it('A failing fan-out rolls the events back', async () => {
  const { emit } = openOutbox(database.db, clock);
  const mend = await addBrokenEndpoint(database.owner);
  const subject = 'endpoint:ep_broken';
  await expect(emit(subject)).rejects.toMatchObject({ code: '22P02' });
  expect(await rowsOf(subject)).toEqual([]);
  await mend();
});

it('Several events in one emit keep their order', async () => {
  const { emit } = openOutbox(database.db, clock);
  const events = await emit('x:1', 'x:2', 'x:1', 'x:1');
  expect(events.map(({ subject, subjectSeq }) => [subject, subjectSeq])).toEqual([
    ['x:1', 1n],
    ['x:2', 1n],
    ['x:1', 2n],
    ['x:1', 3n],
  ]);
  const stored = (await rowsOf('x:%')).map(({ body }) => body);
  const ids = events.map(({ id }) => id);
  expect(stored.map((body) => JSON.parse(body).id).toSorted()).toEqual(ids.toSorted());
});

it('Producers that emit the same subjects in opposite order do not deadlock', async () => {
  let begun = 0;
  const db: Db = {
    ...database.db,
    begin: (work) =>
      database.db.begin((tx) => {
        begun++;
        return work(tx);
      }),
  };
  const { emit } = openOutbox(db, clock);
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => (i % 2 ? emit('d:a', 'd:b') : emit('d:b', 'd:a'))),
  );
  // A deadlock would begin its transaction again.
  expect(begun).toBe(40);
});

it('Emitting no drafts returns no events', async () => {
  expect(await openOutbox(database.db, clock).emitDrafts()).toEqual([]);
});

it('The stored body is exact: numbers as text, escaped strings, time and number', async () => {
  const occurredAt = Date.UTC(2025, 11, 31, 23, 59, 59, 999);
  const data = { addr: 'x"\0', current: { balance: (2n ** 70n).toString(), status: 1 } };
  const { emitDrafts } = openOutbox(database.db, clock);
  const [event] = await emitDrafts(draft('body', { type: 'wallet.observed', occurredAt, data }));
  expect((await rowsOf('body'))[0]?.body).toBe(
    `{"id":"${event?.id}","type":"wallet.observed","timestamp":"2025-12-31T23:59:59.999Z",` +
      '"data":{"addr":"x\\"\\u0000","current":{"balance":"1180591620717411303424","status":1},' +
      '"subject_seq":1}}',
  );
});

it('Three sequencers beside producers number each event once without a gap', async () => {
  await numberAll(database.db);
  const before = await database.owner.sql<{ n: bigint }[]>`
    select coalesce(max(last_seq), 0) as n from tallyhook.feed`;
  const { emit } = openOutbox(database.db, clock);
  const other = connect({ url: database.url, role: WRITER, max: 3 });
  let producing = true;
  const sequencers = [database.db, other, other].map(async (db) => {
    let sum = 0;
    while (producing) sum += await sequence(db);
    return sum;
  });
  for (let i = 0; i < 15; i++)
    await Promise.all([1, 2, 3, 4].map((n) => emit(`seq:${n}`, `seq:${i % 3}`)));
  producing = false;
  const sums = await Promise.all(sequencers);
  const rest = await numberAll(other);
  await other.end();
  const numbers = (await rowsOf('seq:%')).map(({ seq }) => seq);
  const start = before[0]?.n ?? 0n;
  expect(numbers).toEqual(upTo(120).map((n) => n + start));
  expect(sums.reduce((a, b) => a + b, rest)).toBe(120);
});

it('The sequencer returns 0 at once while another holds the feed', async () => {
  const { emit } = openOutbox(database.db, clock);
  await numberAll(database.db);
  await emit('busy');
  await database.owner.begin(async ({ sql }) => {
    await sql`select last_seq from tallyhook.feed for update`;
    expect(await sequence(database.db)).toBe(0);
  });
  expect(await sequence(database.db)).toBe(1);
});

it('An event is numbered after its commit, however late that is', async () => {
  const { outbox, emit } = openOutbox(database.db, clock);
  await numberAll(database.db);
  await database.db.begin(async (tx) => {
    await outbox.emit(tx, [draft('late:first')]);
    await emit('late:second');
    expect(await sequence(database.db)).toBe(1);
  });
  expect(await sequence(database.db)).toBe(1);
  const order = (await rowsOf('late:%')).map(({ subject }) => subject);
  expect(order).toEqual(['late:second', 'late:first']);
});

it('The events of a subject keep their order if the clock of one daemon is behind', async () => {
  await numberAll(database.db);
  const ahead = openOutbox(database.db, manualClock(clock.now() + 5_000));
  const behind = openOutbox(database.db, clock);
  await behind.emit('skew:other');
  await ahead.emit('skew:a');
  await behind.emit('skew:a');
  await ahead.emit('skew:a');
  await numberAll(database.db);
  const numbers = (await rowsOf('skew:a')).map(({ subjectSeq: subject_seq }) => subject_seq);
  expect(numbers).toEqual([1n, 2n, 3n]);
});

it('The unnumbered events are counted up to a maximum, with the time of the oldest', async () => {
  await numberAll(database.db);
  expect(await countUnnumbered(database.db, 10)).toEqual({ waiting: 0, since: null });
  const { emit } = openOutbox(database.db, clock);
  await emit('wait');
  const since = clock.now();
  clock.advance(5);
  await emit('wait', 'wait');
  expect(await countUnnumbered(database.db, 10)).toEqual({ waiting: 3, since });
  expect(await countUnnumbered(database.db, 2)).toEqual({ waiting: 2, since });
});

it.each(['wallet', 'wallet.', 'wall.*', 'wallet.*.x', '*.*', '.*', ''])(
  '%j is no pattern of event types',
  (pattern) => {
    expect(isEventPattern(pattern)).toBe(false);
  },
);

it.each(['toString', 'constructor', 'operation.settled '])('%j is no event type', (pattern) => {
  expect(isEventPattern(pattern)).toBe(false);
});

it('Every event type, its group and * are patterns', () => {
  expect(isEventPattern('*')).toBe(true);
  for (const type of Object.keys(EVENTS)) {
    expect(isEventPattern(type)).toBe(true);
    expect(isEventPattern(`${type.split('.')[0]}.*`)).toBe(true);
  }
});

it.each([
  { subject: 'wallet:0xab', data: {} },
  { subject: 'operation:op_1', data: { operation_id: 'op_1', none: null, gone: undefined } },
  { subject: 'a "b":c\n', data: { own: 'c\n', 'a "name"': '$', empty: '', list: [1, null, ''] } },
  { subject: '', data: { '': '', text: 'null', $: '\u2028\ud800\\n\n', at: { b: 2 ** 53 } } },
  { subject: 'only', data: { none: null } },
])('A body has the members of its data as they were: %j', async ({ subject, data }) => {
  const { emitDrafts } = openOutbox(database.db, clock);
  const [event] = await emitDrafts(draft(subject, { data: data as never }));
  const { id, type, occurredAt, subjectSeq } = must(event, 'event');
  const timestamp = new Date(occurredAt).toISOString();
  const body = jsonText({ id, type, timestamp, data: { ...data, subject_seq: subjectSeq } });
  const stored = await database.db.sql`
    select tallyhook.event_body(events) as body from tallyhook.events where id = ${uuidOf(id)}`;
  expect(stored).toEqual([{ body }]);
});

it('The names of members are stored once, with the first event that has them', async () => {
  const { emitDrafts } = openOutbox(database.db, clock);
  const data = { same: 1, other: 2 } as never;
  const emitted = Array.from({ length: 9 }, (_, n) => emitDrafts(draft(`shape:${n}`, { data })));
  await Promise.all(emitted);
  await emitDrafts(draft('shape:last', { data }), draft('shape:last', { data }));
  const bodies = (await rowsOf('shape:%')).map(({ body }) => JSON.parse(body).data);
  expect(bodies).toHaveLength(11);
  for (const body of bodies) expect(body).toMatchObject({ same: 1, other: 2 });
  const stored = await database.owner.sql`
    select count(*)::int from tallyhook.event_shapes where names = '{same,other}'`;
  expect(stored[0]?.count).toBeLessThan(11);
});
