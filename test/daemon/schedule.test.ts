/** The rhythm of workers: by themselves, when woken, after failures, and never after a stop. */
import { describe, expect, it, test } from 'vitest';
import { startNudges } from '../../src/daemon/workers/cron.ts';
import { makeNotifier } from '../../src/daemon/workers/notifier.ts';
import { makeSchedule, type Worker } from '../../src/daemon/workers/schedule.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';

const NEVER_MS = 86_400_000;

/** A worker whose passes the test ends one by one. */
function handled(name = 'worker') {
  const begun: { end: (next?: number) => void; fail: (error: Error) => void }[] = [];
  let running = 0;
  let most = 0;
  const worker: Worker = {
    name,
    pollMs: NEVER_MS,
    pass: () =>
      new Promise<number | undefined>((resolve, reject) => {
        running++;
        most = Math.max(most, running);
        const over = () => {
          running--;
        };
        begun.push({
          end: (next) => {
            over();
            resolve(next);
          },
          fail: (error) => {
            over();
            reject(error);
          },
        });
      }),
  };
  return {
    worker,
    begun,
    most: () => most,
    /** Resolves when that many passes have begun. */
    until: (n: number) => expect.poll(() => begun.length).toBe(n),
    last: () => begun.at(-1),
  };
}

function scheduleOf(workers: Worker[], passDeadlineMs = NEVER_MS) {
  let text = '';
  const log = makeLog('error', {
    write: (line: string) => {
      text += line;
    },
  });
  const metrics = makeMetrics();
  const schedule = makeSchedule({ workers, clock: systemClock, log, metrics, passDeadlineMs });
  return { schedule, metrics, logged: () => text };
}

/** Lets everything that is ready run. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
async function turns(n = 20) {
  for (let i = 0; i < n; i++) await turn();
}

describe('A schedule', () => {
  test('Runs a worker at the start, then waits for its poll or for being woken', async () => {
    const { worker, begun, until, last } = handled();
    const { schedule } = scheduleOf([worker]);
    await turns();
    expect(begun).toHaveLength(0);
    schedule.start();
    await until(1);
    last()?.end();
    await turns();
    expect(begun).toHaveLength(1);
    schedule.wake('worker', 'nobody');
    await until(2);
    last()?.end();
    await schedule.stop();
  });

  test('Woken during a pass, however often, runs once more, never twice at once', async () => {
    const { worker, begun, until, last, most } = handled();
    const { schedule } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    for (let i = 0; i < 5; i++) schedule.wake('worker');
    await turns();
    expect(begun).toHaveLength(1);
    last()?.end();
    await until(2);
    last()?.end();
    await turns();
    expect([begun.length, most()]).toEqual([2, 1]);
    await schedule.stop();
  });

  test('Runs again at once when a pass says that there is more', async () => {
    const { worker, until, last } = handled();
    const { schedule } = scheduleOf([worker]);
    schedule.start();
    for (const n of [1, 2, 3]) {
      await until(n);
      last()?.end(systemClock.now());
    }
    await until(4);
    last()?.end(systemClock.now() + NEVER_MS);
    await schedule.stop();
  });

  test('Wakes only whom it names', async () => {
    const one = handled('one');
    const two = handled('two');
    const { schedule } = scheduleOf([one.worker, two.worker]);
    schedule.start();
    await one.until(1);
    await two.until(1);
    for (const { last } of [one, two]) last()?.end();
    await turns();
    schedule.wake('two');
    await two.until(2);
    await turns();
    expect(one.begun).toHaveLength(1);
    two.last()?.end();
    await schedule.stop();
  });

  test('After a failing pass waits, even when woken, and then goes on', async () => {
    const { worker, begun, until, last } = handled();
    const { schedule, metrics, logged } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    last()?.fail(new Error('Bearer hush0123456789'));
    await turns();
    schedule.wake('worker');
    await turns();
    expect(begun).toHaveLength(1);
    await until(2);
    last()?.end();
    await schedule.stop();
    expect(logged()).toContain('"worker":"worker","failures":1');
    expect(logged()).not.toContain('hush');
    expect(await metrics.text()).toContain('pass_failures_total{worker="worker"} 1');
  });

  test('A pass that throws at once is a failing pass', async () => {
    let passes = 0;
    const worker: Worker = {
      name: 'worker',
      pollMs: NEVER_MS,
      pass: () => {
        passes++;
        throw new Error('at once');
      },
    };
    const { schedule, logged } = scheduleOf([worker]);
    schedule.start();
    await expect.poll(() => passes).toBe(2);
    await schedule.stop();
    expect(logged()).toContain('"failures":2');
  });

  test('A pass that hangs is given up at its deadline, and the worker goes on', async () => {
    const { worker, until, last, begun } = handled();
    const { schedule, logged } = scheduleOf([worker], 30);
    schedule.start();
    await until(2);
    last()?.end();
    await turns();
    await schedule.stop();
    expect(logged()).toContain('exceeded its deadline');
    begun[0]?.end();
  });

  test('Stopped lets the pass under way end, and begins no more', async () => {
    const { worker, begun, until, last } = handled();
    const { schedule } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    let stopped = false;
    const stop = schedule.stop().then(() => {
      stopped = true;
    });
    schedule.wake('worker');
    await turns();
    expect(stopped).toBe(false);
    last()?.end(systemClock.now());
    await stop;
    schedule.wake('worker');
    await turns();
    expect(begun).toHaveLength(1);
  });

  test('Stopped twice, before its start, or after a failure, ends at once', async () => {
    const idle = handled();
    const first = scheduleOf([idle.worker]).schedule;
    await first.stop();
    first.start();
    await first.stop();
    expect(idle.begun).toHaveLength(0);
    const failing = handled();
    const second = scheduleOf([failing.worker]).schedule;
    second.start();
    await failing.until(1);
    failing.last()?.fail(new Error('x'));
    await turns();
    await Promise.all([second.stop(), second.stop()]);
    await turns();
    expect(failing.begun).toHaveLength(1);
  });
});

describe('A notifier', () => {
  test('Ends the wait of everybody who waits now, and of nobody later', async () => {
    const notifier = makeNotifier();
    const { signal } = new AbortController();
    const ended: number[] = [];
    const wait = (n: number) => notifier.next(signal, NEVER_MS).then(() => ended.push(n));
    const first = Promise.all([wait(1), wait(2)]);
    notifier.ring();
    await first;
    const gone = new AbortController();
    const third = notifier.next(gone.signal, NEVER_MS).then(() => ended.push(3));
    await turns();
    expect(ended).toEqual([1, 2]);
    gone.abort();
    await third;
    await notifier.next(signal, 1);
    expect(ended).toEqual([1, 2, 3]);
  });
});

describe('A nudge', () => {
  const log = makeLog('silent');

  it.each(['nonsense', '99 * * * *', '', '* * *'])('By %j is refused', (cron) => {
    const nudges = [{ name: 'reports', cron, timeZone: 'UTC' }];
    expect(() => startNudges(nudges, log, () => {})).toThrow(
      expect.objectContaining({ code: 'bad_setting', detail: expect.stringContaining('reports') }),
    );
  });

  test('By the calendar is stopped with its answer', async () => {
    const nudges = [{ name: 'reports', cron: '5 0 * * *', timeZone: 'Europe/Berlin' }];
    await startNudges(nudges, log, () => {})();
  });
});
