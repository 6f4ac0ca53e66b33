/** One event of a subject is handled at a time. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { makeLocks } from '../../library/receive/deadline.ts';

const busy = expect.objectContaining({ code: 'busy' });

/** What is in use once garbage is collected. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

/** Work that ends when it is told to. */
function makeWork(steps: string[], name: string) {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    steps.push(`${name} begins`);
    await ended;
    steps.push(`${name} ends`);
  };
  return { work, end };
}

it('Work that stops waiting does not release the work behind it while earlier work runs', async () => {
  const run = makeLocks(20);
  const steps: string[] = [];
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => makeWork(steps, name));
  if (!a || !b || !c || !d) throw new Error('four are made');
  const first = run('subject', a.work);
  await expect(run('subject', b.work)).rejects.toEqual(busy);
  await expect(run('subject', c.work)).rejects.toEqual(busy);
  expect(steps).toEqual(['a begins']);
  a.end();
  await first;
  d.end();
  await run('subject', d.work);
  expect(steps).toEqual(['a begins', 'a ends', 'd begins', 'd ends']);
});

it('Work that waits begins in the order in which it came, also after some stopped waiting', async () => {
  const run = makeLocks(200);
  const steps: string[] = [];
  const [a, b] = [makeWork(steps, 'a'), makeWork(steps, 'b')];
  const first = run('subject', a.work);
  await expect(run('subject', b.work)).rejects.toEqual(busy);
  const failing = run('subject', async () => {
    steps.push('c fails');
    throw new Error('c');
  });
  const last = run('subject', async () => steps.push('d'));
  a.end();
  await first;
  await expect(failing).rejects.toThrow('c');
  await last;
  expect(steps).toEqual(['a begins', 'a ends', 'c fails', 'd']);
});

it('Work that stopped waiting leaves nothing in memory while earlier work runs', async () => {
  const run = makeLocks(1);
  const held = makeWork([], 'held');
  const first = run('subject', held.work);
  const waitInVain = async () => {
    const waiting = Array.from({ length: 999 }, () => run('subject', held.work));
    await Promise.allSettled(waiting);
  };
  await waitInVain();
  const before = heapBytes();
  for (let round = 0; round < 20; round++) await waitInVain();
  expect(heapBytes() - before).toBeLessThan(2_000_000);
  held.end();
  await first;
});

it('Work of another name does not wait', async () => {
  const run = makeLocks(20);
  const steps: string[] = [];
  const [a, b] = [makeWork(steps, 'a'), makeWork(steps, 'b')];
  const first = run('one', a.work);
  b.end();
  await run('two', b.work);
  a.end();
  await first;
  expect(steps).toEqual(['a begins', 'b begins', 'b ends', 'a ends']);
});

it('A thousand events are handled at once at most', async () => {
  const run = makeLocks(20);
  const held = makeWork([], 'held');
  const running = Array.from({ length: 1_000 }, (_, n) => run(String(n), held.work));
  await expect(run('one more', held.work)).rejects.toEqual(busy);
  held.end();
  await Promise.all(running);
  await run('one more', held.work);
});
