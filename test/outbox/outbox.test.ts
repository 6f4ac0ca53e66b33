/** Events belong to the commit of their change, are counted per subject, and are numbered once. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { WRITER } from '../../src/db/roles.ts';
import { EVENTS, isEventPattern } from '../../src/outbox/events.ts';
import { countUnnumbered, sequence } from '../../src/outbox/outbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { draft, openOutbox } from './outbox-parts.ts';

let database: TestDatabase;
let clock: ManualClock;
beforeAll(async () => {
  database = await createDatabase();
});
beforeEach(() => {
  clock = manualClock();
});
afterAll(() => database.drop());

interface Row {
  subject: string;
  subject_seq: bigint;
  seq: bigint | null;
  body: string;
}
const rowsOf = (pattern: string) => database.owner.sql<Row[]>`
  select subject, subject_seq, seq, body from tallyhook.events where subject like ${pattern}
  order by seq, subject, subject_seq`;

/** From 1 without a gap, each once. */
const counted = (n: number) => Array.from({ length: n }, (_, i) => BigInt(i + 1));

/** Numbers events until there are none. */
async function drain(db: Db): Promise<number> {
  let sum = 0;
  for (let done = await sequence(db); done > 0; done = await sequence(db)) sum += done;
  return sum;
}

describe('Emitting', () => {
  test('Counts each subject from 1 without a gap, however many emit at once', async () => {
    const { emit } = openOutbox(database.db, clock);
    const subjects = ['many:a', 'many:b', 'many:c'];
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        emit(subjects[i % 3] ?? '', subjects[(i + 1) % 3] ?? ''),
      ),
    );
    for (const subject of subjects) {
      const rows = await rowsOf(subject);
      expect(rows.map((row) => row.subject_seq).toSorted((a, b) => Number(a - b))).toEqual(
        counted(40),
      );
    }
  });

  test('In a transaction that fails leaves no event, no delivery and no gap', async () => {
    const { outbox, emit } = openOutbox(database.db, clock);
    await emit('undone');
    const boom = new Error('undone');
    const failed = database.db.begin(async (tx) => {
      await outbox.emit(tx, [draft('undone'), draft('undone')]);
      throw boom;
    });
    await expect(failed).rejects.toBe(boom);
    await emit('undone');
    expect((await rowsOf('undone')).map((row) => row.subject_seq)).toEqual([1n, 2n]);
  });

  test('Fans out in the same commit: when that fails, nothing happened', async () => {
    const boom = new Error('no deliveries');
    const { emit } = openOutbox(database.db, clock, async () => {
      throw boom;
    });
    await expect(emit('fan')).rejects.toBe(boom);
    expect(await rowsOf('fan')).toEqual([]);
  });

  test('Several of one subject keeps their order, and gives fan-out what was written', async () => {
    const given: string[] = [];
    const { emit } = openOutbox(database.db, clock, async (_tx, _recordedAt, ids) => {
      given.push(...ids);
    });
    const events = await emit('x:1', 'x:2', 'x:1', 'x:1');
    expect(events.map(({ subject, subjectSeq }) => [subject, subjectSeq])).toEqual([
      ['x:1', 1n],
      ['x:2', 1n],
      ['x:1', 2n],
      ['x:1', 3n],
    ]);
    expect(given).toEqual(events.map(({ id }) => id));
    const written = (await rowsOf('x:%')).map(({ body }) => body);
    expect(written.toSorted()).toEqual(events.map(({ body }) => body).toSorted());
  });

  test('In opposite order of subjects never ends in a deadlock', async () => {
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
    expect(begun).toBe(40);
  });

  test('Nothing writes nothing', async () => {
    const { outbox } = openOutbox(database.db, clock);
    expect(await database.db.begin((tx) => outbox.emit(tx, []))).toEqual([]);
  });

  test('Fixes the body once: exact numbers, its own number, and the time it happened', async () => {
    const { outbox } = openOutbox(database.db, clock);
    const occurredAt = Date.UTC(2025, 11, 31, 23, 59, 59, 999);
    const [event] = await database.db.begin((tx) =>
      outbox.emit(tx, [
        draft('body', {
          type: 'wallet.observed',
          occurredAt,
          data: { addr: 'x"\0', current: { balance: (2n ** 70n).toString(), status: 1 } },
        }),
      ]),
    );
    expect(event?.body).toBe(
      `{"id":"${event?.id}","type":"wallet.observed","timestamp":"2025-12-31T23:59:59.999Z",` +
        '"data":{"addr":"x\\"\\u0000","current":{"balance":"1180591620717411303424","status":1},' +
        '"subject_seq":1}}',
    );
    expect((await rowsOf('body'))[0]?.body).toBe(event?.body);
  });
});

describe('The sequencer', () => {
  test('Numbers each event once without a gap, three at once beside producers', async () => {
    await drain(database.db);
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
    const rest = await drain(other);
    await other.end();
    const seqs = (await rowsOf('seq:%')).map(({ seq }) => seq);
    expect(seqs).toHaveLength(120);
    const start = before[0]?.n ?? 0n;
    expect(seqs).toEqual(counted(120).map((n) => n + start));
    expect(sums.reduce((a, b) => a + b, rest)).toBe(120);
  });

  test('Answers 0 at once while another is at it', async () => {
    const { emit } = openOutbox(database.db, clock);
    await drain(database.db);
    await emit('busy');
    await database.owner.begin(async ({ sql }) => {
      await sql`select last_seq from tallyhook.feed for update`;
      expect(await sequence(database.db)).toBe(0);
    });
    expect(await sequence(database.db)).toBe(1);
  });

  test('Sees no event before its commit, and gives a late one the next number', async () => {
    const { outbox, emit } = openOutbox(database.db, clock);
    await drain(database.db);
    await database.db.begin(async (tx) => {
      await outbox.emit(tx, [draft('late:first')]);
      await emit('late:second');
      expect(await sequence(database.db)).toBe(1);
    });
    expect(await sequence(database.db)).toBe(1);
    const order = (await rowsOf('late:%')).map(({ subject }) => subject);
    expect(order).toEqual(['late:second', 'late:first']);
  });

  test('Keeps the order of a subject, though the clock of one daemon is behind', async () => {
    await drain(database.db);
    const ahead = openOutbox(database.db, manualClock(clock.now() + 5_000));
    const behind = openOutbox(database.db, clock);
    await behind.emit('skew:other');
    await ahead.emit('skew:a');
    await behind.emit('skew:a');
    await ahead.emit('skew:a');
    await drain(database.db);
    const rows = (await rowsOf('skew:a')).map(({ subject_seq }) => subject_seq);
    expect(rows).toEqual([1n, 2n, 3n]);
  });

  test('Says how many wait, and since when', async () => {
    await drain(database.db);
    expect(await countUnnumbered(database.db, 10)).toEqual({ waiting: 0, since: null });
    const { emit } = openOutbox(database.db, clock);
    await emit('wait');
    const since = clock.now();
    clock.advance(5);
    await emit('wait', 'wait');
    expect(await countUnnumbered(database.db, 10)).toEqual({ waiting: 3, since });
    expect(await countUnnumbered(database.db, 2)).toEqual({ waiting: 2, since });
  });
});

describe('A pattern of event types', () => {
  it.each([
    ['*', true],
    ['wallet.*', true],
    ['operation.settled', true],
    ['wallet', false],
    ['wallet.', false],
    ['wall.*', false],
    ['wallet.*.x', false],
    ['*.*', false],
    ['.*', false],
    ['', false],
    ['toString', false],
    ['constructor', false],
    ['operation.settled ', false],
  ])('%j is one: %s', (pattern, is) => {
    expect(isEventPattern(pattern)).toBe(is);
  });

  test('Is any type, and the group of any type', () => {
    for (const type of Object.keys(EVENTS)) {
      expect(isEventPattern(type)).toBe(true);
      expect(isEventPattern(`${type.split('.')[0]}.*`)).toBe(true);
    }
  });
});
