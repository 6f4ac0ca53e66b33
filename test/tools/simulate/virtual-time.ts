/**
 * Pauses on a manual clock: a pause ends when the clock has passed its time or its signal aborts.
 * The simulation continues when all running work is done or paused.
 */
import type { ManualClock } from '../../harness/manual-clock.ts';

export interface VirtualTime {
  pause(ms: number, signal?: AbortSignal): Promise<void>;
  /** Moves the clock on and ends pauses, earliest first. */
  advance(ms: number): Promise<void>;
  /** Counts as running until it is done. */
  run(work: Promise<unknown>): void;
  /** Resolves when all running work is done or paused. */
  settled(): Promise<void>;
  /** Abandons all pauses, as when a process is killed. */
  forget(): void;
  underWay(): number;
}

interface Sleeper {
  at: number;
  wake: () => void;
}

export function virtualTime(clock: ManualClock): VirtualTime {
  let sleepers: Sleeper[] = [];
  let running = 0;
  let generation = 0;
  let listeners: (() => void)[] = [];
  const print = () => {
    const waiting = listeners;
    listeners = [];
    for (const resolve of waiting) resolve();
  };
  async function settled(): Promise<void> {
    while (running > sleepers.length)
      await new Promise<void>((resolve) => {
        listeners.push(resolve);
      });
  }
  return {
    settled,
    underWay: () => running,
    pause(ms, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = () => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper = { at: clock.now() + ms, wake };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
        print();
      });
    },
    async advance(ms) {
      const until = clock.now() + ms;
      for (;;) {
        const next = sleepers.toSorted((a, b) => a.at - b.at)[0];
        if (!next || next.at > until) break;
        clock.set(Math.max(clock.now(), next.at));
        next.wake();
        await settled();
      }
      clock.set(Math.max(clock.now(), until));
    },
    run(work) {
      const mine = generation;
      running += 1;
      const done = () => {
        if (mine !== generation) return;
        running -= 1;
        print();
      };
      work.then(done, done);
    },
    forget() {
      generation += 1;
      running = 0;
      sleepers = [];
      print();
    },
  };
}
