/** A consumer against a model of it, and its workers in a race with crashes. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { makePartitions } from '../../src/db/partitions.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { type Consumers, makeConsumers } from '../../src/outbox/outbox.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { numberAll, openOutbox } from './rig.ts';

const REDELIVER_S = 30;
const clock = manualClock(Date.UTC(2026, 0, 10));
const ids = makeIds(clock, systemRandom);
const database = await useDatabase();
const consumers = makeConsumers({ db: database.db, clock, ids });
const { emit } = openOutbox(database.db, clock);
const input = { eventTypes: ['*'], from: 'latest', redeliverAfterS: REDELIVER_S };

beforeAll(() => makePartitions(database.db, clock.now()));

const pullFrom = async (from: Consumers, id: string, limit: number) => {
  const aborted = new AbortController().signal;
  const request = { limit, waitMs: 0, nextEvent: async () => {}, aborted };
  return (await from.pull(id, request)).events.map(({ receipt, body }) => {
    const { endpoint_id: subject, subject_seq: seq } = JSON.parse(body).data;
    return { receipt, subject: String(subject), seq: Number(seq) };
  });
};

/** An event of the window, as the definition of a consumer says it. */
interface Held {
  name: string;
  subject: string;
  handedOut: number;
  leaseUntil: number;
  receipt: string;
}

type Step =
  | { do: 'emit'; subject: string }
  | { do: 'pull'; limit: number }
  | { do: 'ack' | 'release'; which: number[] }
  | { do: 'wait'; s: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('emit' as const), subject: fc.constantFrom('a', 'b', 'c') }),
  fc.record({ do: fc.constant('pull' as const), limit: fc.integer({ min: 1, max: 4 }) }),
  fc.record({
    do: fc.constantFrom('ack' as const, 'release' as const),
    which: fc.array(fc.nat(12), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ do: fc.constant('wait' as const), s: fc.constantFrom(1, 15, 29, 30) }),
);

it('After any sequence of steps workers get what the model says', async () => {
  let runs = 0;
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const run = runs++;
    const { id } = await consumers.createConsumer({ ...input, name: `model${run}` }, 'ann');
    const counts = new Map<string, number>();
    let window: Held[] = [];
    const given: string[] = [];
    for (const one of steps) {
      if (one.do === 'wait') clock.advance(one.s * 1_000);
      if (one.do === 'emit') {
        const subject = `${one.subject}${run}`;
        await emit(subject);
        await numberAll(database.db);
        counts.set(subject, (counts.get(subject) ?? 0) + 1);
        const name = `${subject}/${counts.get(subject)}`;
        window.push({ name, subject, handedOut: 0, leaseUntil: 0, receipt: '' });
      }
      if (one.do === 'pull') {
        const isLeased = ({ leaseUntil }: Held) => leaseUntil > clock.now();
        const busy = new Set(window.filter(isLeased).map(({ subject }) => subject));
        const expected = window.filter(({ subject }) => !busy.has(subject)).slice(0, one.limit);
        const pulled = await pullFrom(consumers, id, one.limit);
        expect(pulled.map(({ subject, seq }) => `${subject}/${seq}`)).toEqual(
          expected.map(({ name }) => name),
        );
        for (const [n, held] of expected.entries()) {
          held.handedOut++;
          held.leaseUntil = clock.now() + REDELIVER_S * 1_000;
          held.receipt = pulled[n]?.receipt ?? '';
          given.push(held.receipt);
        }
      }
      if (one.do === 'ack' || one.do === 'release') {
        const receipts = [...new Set(one.which.flatMap((n) => given[n % given.length] ?? []))];
        if (receipts.length === 0) continue;
        const named = window.filter(({ receipt }) => receipts.includes(receipt));
        if (one.do === 'ack') {
          const { acknowledged } = await consumers.acknowledge(id, receipts);
          expect(acknowledged).toBe(named.length);
          window = window.filter((held) => !named.includes(held));
        } else {
          expect((await consumers.release(id, receipts)).released).toBe(named.length);
          for (const held of named) held.leaseUntil = 0;
        }
      }
    }
    const { behind } = await consumers.getConsumer(id);
    expect(behind).toBe(window.length);
    await consumers.deleteConsumer(id);
  });
  await fc.assert(property, { numRuns: 40 });
});

const SUBJECTS = 12;
const EACH = 25;
const CRASH_SHARE = 0.15;
const second = connect({ url: database.url, role: WRITER, max: 4 });
afterAll(() => second.end());

it('Workers of two daemons that crash at random get each event, in order, one at a time', async () => {
  const random = seededRandom(7);
  const both = [consumers, makeConsumers({ db: second, clock, ids })];
  const { id } = await consumers.createConsumer({ ...input, name: 'race' }, 'ann');
  const subjects = Array.from({ length: SUBJECTS }, (_, n) => `race${n}`);
  const left = { events: SUBJECTS * EACH, crashes: 0, handOuts: 0 };
  /** The leases that workers have, by subject. */
  const live = new Map<string, { worker: number; until: number }>();
  // The next event may reach another worker before this one reads the answer to its
  // acknowledgement, so the order is judged by the acknowledgements that were sent.
  const asked = new Map(subjects.map((subject) => [subject, new Set<number>()]));
  const done = new Map(subjects.map((subject) => [subject, [] as number[]]));
  const wrong: string[] = [];

  const work = async (worker: number) => {
    const from = both[worker % 2] ?? consumers;
    while (left.events > 0) {
      const pulledAt = clock.now();
      const batch = await pullFrom(from, id, 1 + Math.floor(random.unit() * 8));
      left.handOuts += batch.length;
      // No event is left to hand out, but for leases of workers that crashed.
      if (batch.length === 0) clock.advance(1_000);
      for (const [n, { subject, seq }] of batch.entries()) {
        const sameBatch = batch.slice(0, n).filter((one) => one.subject === subject);
        const before = new Set([...(asked.get(subject) ?? []), ...sameBatch.map((one) => one.seq)]);
        const isNext = Array.from({ length: seq - 1 }, (_, k) => k + 1).every((k) => before.has(k));
        if (!isNext) wrong.push(`${subject}/${seq} out of order`);
        // Once its lease has ended another worker may have the subject.
        const until = pulledAt + REDELIVER_S * 1_000;
        if (until <= clock.now()) continue;
        const other = live.get(subject);
        if (other && other.worker !== worker && other.until > clock.now())
          wrong.push(`${subject}/${seq} to ${worker} while ${other.worker} has one`);
        live.set(subject, { worker, until });
      }
      for (const [n, { subject, seq, receipt }] of batch.entries()) {
        if (random.unit() < CRASH_SHARE) {
          left.crashes++;
          break;
        }
        const isLast = !batch.slice(n + 1).some((later) => later.subject === subject);
        if (isLast && live.get(subject)?.worker === worker) live.delete(subject);
        asked.get(subject)?.add(seq);
        const { acknowledged } = await from.acknowledge(id, [receipt]);
        if (acknowledged === 0) continue;
        done.get(subject)?.push(seq);
        left.events--;
      }
    }
  };
  const produce = async () => {
    for (let n = 0; n < EACH; n++) {
      await emit(...subjects);
      await numberAll(database.db);
    }
  };
  await Promise.all([produce(), ...[0, 1, 2, 3, 4, 5].map(work)]);
  expect(wrong).toEqual([]);
  const each = Array.from({ length: EACH }, (_, n) => n + 1);
  for (const seqs of done.values()) expect(seqs.toSorted((a, b) => a - b)).toEqual(each);
  expect(left.crashes).toBeGreaterThan(10);
  expect(left.handOuts).toBeGreaterThan(SUBJECTS * EACH);
  expect(await consumers.getConsumer(id)).toMatchObject({ behind: 0, unacknowledged: 0 });
});
