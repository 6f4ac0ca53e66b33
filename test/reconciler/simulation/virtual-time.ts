/**
 * Waiting by a clock that moves by hand: whoever pauses sleeps until the clock has passed its time
 * or its signal aborts. A story goes on when everything that runs is done or asleep.
 */
import type { ManualClock } from '../../harness/manual-clock.ts';

export interface VirtualTime {
  pause(ms: number, signal?: AbortSignal): Promise<void>;
  /** Moves the clock on and wakes whom it wakes, earliest first. */
  advance(ms: number): Promise<void>;
  /** Takes part in the story until it is done. */
  run(work: Promise<unknown>): void;
  /** Resolves when everything that runs is done or asleep. */
  settled(): Promise<void>;
  /** Everything that sleeps sleeps for ever, as in a process that was killed. */
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
  let heard: (() => void)[] = [];
  const print = () => {
    const waiting = heard;
    heard = [];
    for (const hear of waiting) hear();
  };
  async function settled(): Promise<void> {
    while (running > sleepers.length)
      await new Promise<void>((resolve) => {
        heard.push(resolve);
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
