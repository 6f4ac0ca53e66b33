/** Observations of what apps read through the gateway: not one for each read. */
import { afterAll, describe, expect, it } from 'vitest';
import {
  expedite,
  listObservations,
  listUnprocessed,
  processedOf,
  targetName,
} from '../../src/observer/observer.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';
import { observerOf } from './rig.ts';

const database = await useDatabase();
const clock = manualClock();
const { db } = database;
const { upstream } = await upstreamTo('http://127.0.0.1:1', clock);
const observer = observerOf(db, clock, upstream);
const LIMITS = { fresh: 100, failed: 100 };
afterAll(closeAll);

let wallets = 0;

/** A target that is not polled yet, and reads of it by an app. */
async function read() {
  const addr = `0xA${String(++wallets).padStart(39, '0')}`;
  const ref = { kind: 'wallet', addr } as const;
  await observer.add(db, [ref]);
  const name = targetName(ref);
  const polls = new Set<number>();
  return {
    name,
    async reads(count: number, everyMs: number, balance = 5n) {
      for (let i = 0; i < count; i++) {
        clock.advance(everyMs);
        const at = { startedAt: clock.now() - 10, endedAt: clock.now() };
        const record = { addr, balance, status: 1 };
        await observer.noteRead(ref, { ...at, result: 'seen', raw: null, record });
        const [newest] = await listObservations(db, name, 1);
        if (newest) polls.add(newest.startedAt);
      }
    },
    series: () => listObservations(db, name, 10),
    /** How many of the reads were recorded. */
    polls: () => polls.size,
  };
}

describe('Reads of an app through the gateway', () => {
  it('Reads that show nothing new are one observation per half of the steady interval', async () => {
    const wallet = await read();
    await wallet.reads(200, 300);
    expect(wallet.polls()).toBe(2);
    expect(await wallet.series()).toHaveLength(1);
  });

  it('A read that shows something new begins a series of its own at once', async () => {
    const wallet = await read();
    await wallet.reads(3, 100);
    await wallet.reads(3, 100, 7n);
    const [newest, first] = await wallet.series();
    expect([newest?.record, first?.record]).toMatchObject([{ balance: 7 }, { balance: 5 }]);
    expect(wallet.polls()).toBe(2);
  });

  it('While an operation is open they are one observation per shortest interval of polls', async () => {
    const wallet = await read();
    await wallet.reads(1, 100);
    for (let i = 0; i < 20; i++) {
      await expedite(db, new Map([[wallet.name, clock.now() + 60_000]]));
      await wallet.reads(1, 300);
    }
    expect(wallet.polls()).toBe(6);
  });

  it('However many there are, the reconciler has one observation of the target to process', async () => {
    const wallet = await read();
    for (let balance = 1n; balance <= 20n; balance++) await wallet.reads(1, 10, balance);
    const { fresh } = await listUnprocessed(db, clock.now(), LIMITS);
    const own = fresh.filter(({ target }) => target === wallet.name);
    expect(own).toMatchObject([{ record: { balance: 20 } }]);
    await processedOf(db.sql, own);
  });

  it('A target that changes more often than it can be processed keeps its place in the order', async () => {
    const [often, once] = [await read(), await read()];
    const order = async () => {
      const { fresh } = await listUnprocessed(db, clock.now(), LIMITS);
      return fresh.flatMap(({ target }) =>
        [often.name, once.name].includes(target) ? target : [],
      );
    };
    await often.reads(1, 10, 1n);
    await once.reads(1, 10, 1n);
    for (let balance = 2n; balance <= 5n; balance++) await often.reads(1, 10, balance);
    expect(await order()).toEqual([often.name, once.name]);
  });
});
