/** The worker loops and wake-ups. */
import { describe, expect, it } from 'vitest';
import { makeSchedule, type Worker } from '../../src/daemon/workers/schedule.ts';
import { coalesce, makeNotifier, makeWakeUps } from '../../src/daemon/workers/wake-up.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import type { WorkerName } from '../../src/kernel/workers.ts';

const NEVER_MS = 86_400_000;

/** A worker whose passes the test ends one by one. */
function controlledWorker(name: WorkerName = 'ledger') {
  const passes: {
    signal: AbortSignal;
    end: (next?: number) => void;
    fail: (error: Error) => void;
  }[] = [];
  let running = 0;
  let most = 0;
  const worker: Worker = {
    name,
    intervalMs: NEVER_MS,
    pass: (_, signal) =>
      new Promise<number | undefined>((resolve, reject) => {
        running++;
        most = Math.max(most, running);
        passes.push({
          signal,
          end: (next) => {
            running--;
            resolve(next);
          },
          fail: (error) => {
            running--;
            reject(error);
          },
        });
      }),
  };
  return {
    worker,
    passes,
    most: () => most,
    /** Resolves when that many passes have passes. */
    until: (n: number) => expect.poll(() => passes.length).toBe(n),
    last: () => passes.at(-1),
  };
}

function scheduleOf(workers: Worker[], passTimeoutMs = NEVER_MS) {
  let text = '';
  const log = makeLog('error', {
    write: (line: string) => {
      text += line;
    },
  });
  const metrics = makeMetrics();
  const wakeUps = makeWakeUps();
  const clock = systemClock;
  const schedule = makeSchedule({ workers, clock, log, metrics, passTimeoutMs, wakeUps });
  return { schedule, wake: wakeUps.wake, metrics, logged: () => text };
}

/** Lets everything that is ready run. */
async function flush() {
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

describe('The schedule', () => {
  it('runs each worker at the start and then waits for its interval or a wake-up', async () => {
    const { worker, passes, until, last } = controlledWorker();
    const { schedule, wake } = scheduleOf([worker]);
    await flush();
    expect(passes).toHaveLength(0);
    schedule.start();
    await until(1);
    last()?.end();
    await flush();
    expect(passes).toHaveLength(1);
    wake('ledger', 'gauges');
    await until(2);
    last()?.end();
    await schedule.stop();
  });

  it('runs a worker woken during its pass once more, and never twice at once', async () => {
    const { worker, passes, until, last, most } = controlledWorker();
    const { schedule, wake } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    for (let i = 0; i < 5; i++) wake('ledger');
    await flush();
    expect(passes).toHaveLength(1);
    last()?.end();
    await until(2);
    last()?.end();
    await flush();
    expect([passes.length, most()]).toEqual([2, 1]);
    await schedule.stop();
  });

  it('runs a worker again at once when its pass returns the present as the next instant', async () => {
    const { worker, until, last } = controlledWorker();
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

  it('wakes only the named workers', async () => {
    const one = controlledWorker('alerts');
    const two = controlledWorker('probe');
    const { schedule, wake } = scheduleOf([one.worker, two.worker]);
    schedule.start();
    await one.until(1);
    await two.until(1);
    for (const { last } of [one, two]) last()?.end();
    await flush();
    wake('probe');
    await two.until(2);
    await flush();
    expect(one.passes).toHaveLength(1);
    two.last()?.end();
    await schedule.stop();
  });

  it('pauses after a failed pass, even when woken, and then continues', async () => {
    const { worker, passes, until, last } = controlledWorker();
    const { schedule, wake, metrics, logged } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    last()?.fail(new Error('Bearer hush0123456789'));
    await flush();
    wake('ledger');
    await flush();
    expect(passes).toHaveLength(1);
    await until(2);
    last()?.end();
    await schedule.stop();
    expect(logged()).toContain('"worker":"ledger","failures":1');
    expect(logged()).not.toContain('hush');
    expect(await metrics.text()).toContain('pass_failures_total{worker="ledger"} 1');
  });

  it('treats a pass that throws synchronously as a failed pass', async () => {
    let count = 0;
    const worker: Worker = {
      name: 'ledger',
      intervalMs: NEVER_MS,
      pass: () => {
        count++;
        throw new Error('at once');
      },
    };
    const { schedule, logged } = scheduleOf([worker]);
    schedule.start();
    await expect.poll(() => count).toBe(2);
    await schedule.stop();
    expect(logged()).toContain('"failures":2');
  });

  it('fails a pass that exceeds its timeout, asks it to stop, and waits until it has ended', async () => {
    const { worker, passes, until, last, most } = controlledWorker();
    const { schedule, wake, metrics, logged } = scheduleOf([worker], 30);
    const overdue = async () =>
      Number(/pass_overdue_seconds\{worker="ledger"\} (\S+)/.exec(await metrics.text())?.[1]);
    schedule.start();
    await until(1);
    expect(await overdue()).toBe(0);
    await expect.poll(overdue).toBeGreaterThan(0.02);
    expect(last()?.signal.aborted).toBe(true);
    expect(logged()).toContain('the next one waits for it');
    wake('ledger');
    await flush();
    expect(passes).toHaveLength(1);
    last()?.end();
    await until(2);
    expect([await overdue(), most()]).toEqual([0, 1]);
    expect(last()?.signal.aborted).toBe(false);
    expect(logged()).toContain('exceeded its timeout');
    expect(await metrics.text()).toContain('pass_failures_total{worker="ledger"} 1');
    last()?.end();
    await schedule.stop();
  });

  it('logs the error of a pass that fails after its timeout, and continues', async () => {
    const { worker, until, last } = controlledWorker();
    const { schedule, logged } = scheduleOf([worker], 30);
    schedule.start();
    await until(1);
    await expect.poll(logged).toContain('the next one waits for it');
    last()?.fail(new Error('too late'));
    await until(2);
    expect(logged()).toContain('worker pass failed after its timeout');
    last()?.end();
    await schedule.stop();
  });

  it('stops although a pass hangs beyond its timeout', async () => {
    const { worker, passes, until } = controlledWorker();
    const { schedule, logged } = scheduleOf([worker], 30);
    schedule.start();
    await until(1);
    await expect.poll(logged).toContain('the next one waits for it');
    await schedule.stop();
    expect(passes).toHaveLength(1);
  });

  it('asks the running pass to stop, waits for it and starts no other', async () => {
    const { worker, passes, until, last } = controlledWorker();
    const { schedule, wake } = scheduleOf([worker]);
    schedule.start();
    await until(1);
    let stopped = false;
    const stop = schedule.stop().then(() => {
      stopped = true;
    });
    wake('ledger');
    await flush();
    expect([stopped, last()?.signal.aborted]).toEqual([false, true]);
    last()?.end(systemClock.now());
    await stop;
    wake('ledger');
    await flush();
    expect(passes).toHaveLength(1);
  });

  it('stops at once when stopped twice, before its start, or after a failure', async () => {
    const idle = controlledWorker();
    const first = scheduleOf([idle.worker]).schedule;
    await first.stop();
    first.start();
    await first.stop();
    expect(idle.passes).toHaveLength(0);
    const failing = controlledWorker();
    const second = scheduleOf([failing.worker]).schedule;
    second.start();
    await failing.until(1);
    failing.last()?.fail(new Error('x'));
    await flush();
    await Promise.all([second.stop(), second.stop()]);
    await flush();
    expect(failing.passes).toHaveLength(1);
  });
});

describe('A coalesced wake-up', () => {
  it('happens at once, and calls in the gap after it cause one more', async () => {
    let calls = 0;
    const wake = coalesce(20, () => {
      calls++;
    });
    for (let i = 0; i < 100; i++) wake();
    expect(calls).toBe(1);
    await expect.poll(() => calls).toBe(2);
    await expect
      .poll(() => {
        wake();
        return calls;
      })
      .toBeGreaterThan(2);
  });
});

describe('A notifier', () => {
  it('ends current waits and no later ones', async () => {
    const notifier = makeNotifier();
    const { signal } = new AbortController();
    const ended: number[] = [];
    const wait = (n: number) => notifier.wait(signal, NEVER_MS).then(() => ended.push(n));
    const first = Promise.all([wait(1), wait(2)]);
    notifier.notify();
    await first;
    const gone = new AbortController();
    const third = notifier.wait(gone.signal, NEVER_MS).then(() => ended.push(3));
    await flush();
    expect(ended).toEqual([1, 2]);
    gone.abort();
    await third;
    await notifier.wait(signal, 1);
    expect(ended).toEqual([1, 2, 3]);
  });
});
