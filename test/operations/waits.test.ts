/**
 * How long a write waits for those that it conflicts with: no longer than the setting says, and not
 * where waiting cannot help.
 */
import { beforeEach, expect, it } from 'vitest';
import { OPEN_MAX } from '../../src/operations/intake/conflicts.ts';
import { until } from '../harness/until.ts';
import { changed, freshWallet, giveTo, useOperations, WAIT_MS, write } from './rig.ts';

const rig = useOperations();
let toAddr: string;
beforeEach(() => {
  toAddr = freshWallet();
});

const give = (amount = 10n) => giveTo(toAddr, amount);
/** Records a write; tells when that was done. */
const recording = async (more = give(), { operations } = rig.first) => {
  const recorded = await operations.record(write(more));
  return { at: rig.clock.now(), ...('id' in recorded ? recorded : undefined) };
};
const ambiguous = { ambiguous: true };

it('A write does not wait while more than twelve others are open on its wallet', async () => {
  for (let i = 0; i <= OPEN_MAX; i++)
    expect(await recording(give(3n ** BigInt(i)))).toMatchObject({ ambiguous: false });
  expect(await recording(give(3n ** 20n))).toMatchObject(ambiguous);
});

it('A write does not wait for one that was open for the whole wait already', async () => {
  await rig.conclude(await rig.record(give()), 'unknown');
  rig.clock.advance(WAIT_MS - 500);
  const second = recording();
  await rig.clock.paused(1, 500);
  rig.clock.advance(500);
  expect(await second).toMatchObject(ambiguous);
  expect(await recording()).toMatchObject(ambiguous);
});

it('A write waits for an equal one in spite of an older unknown one of another amount', async () => {
  await rig.conclude(await rig.record(give(1_000n)), 'unknown');
  rig.clock.advance(WAIT_MS);
  const first = await rig.record(give());
  const second = recording();
  await rig.clock.paused(1, WAIT_MS);
  await rig.conclude(first, 'accepted');
  expect(await second).toMatchObject({ ambiguous: false });
});

it('Of forty equal writes twelve wait, and no longer than for a first one sent as ambiguous', async () => {
  const first = await rig.record(give());
  const sent: boolean[] = [];
  const all = Array.from({ length: 40 }, async () => {
    const { ambiguous } = await recording();
    sent.push(ambiguous === true);
  });
  await rig.clock.paused(OPEN_MAX, WAIT_MS);
  await until(async () => (sent.length === 40 - OPEN_MAX ? true : undefined));
  await rig.conclude(first, 'accepted');
  await Promise.all(all);
  expect(sent).toEqual(Array(40).fill(true));
});

it('Each of sixty equal writes is recorded within the wait, though every commit takes long', async () => {
  const commitMs = 100;
  const { db } = rig.database;
  const single: typeof db.single = (work) => {
    rig.clock.advance(commitMs);
    return db.single(work);
  };
  const slow = await rig.open({}, changed(db, { single }));
  await rig.keepAlive();
  await recording(give(), slow);
  const arrivedAt = rig.clock.now();
  const recordedAt: number[] = [];
  for (let i = 0; i < 60; i++)
    void recording(give(), slow).then(({ at }) => recordedAt.push(at - arrivedAt));
  await until(async () => {
    if (recordedAt.length === 60) return true;
    rig.clock.advance(commitMs / 2);
  });
  expect(Math.max(...recordedAt)).toBeLessThanOrEqual(WAIT_MS + 5 * commitMs);
});

it('A write that writes of another daemon overtake again and again is sent as ambiguous', async () => {
  const { db } = rig.database;
  let amount = 1n;
  const single: typeof db.single = async (work) => {
    amount *= 3n;
    await rig.record(give(amount), rig.other);
    return db.single(work);
  };
  const overtaken = await rig.open({}, changed(db, { single }));
  expect(await recording(give(1n), overtaken)).toMatchObject(ambiguous);
});
