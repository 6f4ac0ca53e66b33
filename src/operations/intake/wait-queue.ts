/**
 * Where writes wait until something that stands in their way is gone. What is gone in this process
 * is told; what other daemons end is found by one shared look at all that is waited for. Those who
 * came first are woken first, and only a few at a time, because each may stand in the way of the
 * next.
 *
 * Bounded: every wait has its end, at most `max` wait at once, and `close` releases all of them.
 */
import type { pause } from '../../kernel/clock.ts';

/** How a wait ended: something left, its time was over, or nothing waits any more. */
export type Woken = 'notified' | 'timed_out' | 'closed';

export interface WaitQueue {
  /**
   * Waits until one of these is gone, at most `ms`; `ended` at once when the room is full. Of those
   * that may go on, the lowest `turn` goes first.
   */
  wait(for_: readonly string[], ms: number, turn: number): Promise<Woken>;
  /** Tells that these are gone. */
  notify(gone: Iterable<string>): void;
  /** Releases everybody; from then on nobody waits. */
  close(): void;
}

interface Waiter {
  for: Set<string>;
  turn: number;
  /** Something that it waited for is gone: it may try again. */
  due: boolean;
  wake: AbortController;
}

/** How often what other daemons may have ended is looked at, in milliseconds. */
const LOOK_MS = 75;
const WOKEN_AT_ONCE = 32;
const LOOKED_AT_MAX = 2_000;

/** @param stillThere which of these are not gone; what it throws is tried again at the next look */
export function makeWaitQueue(given: {
  max: number;
  pause: typeof pause;
  stillBlocking: (names: string[]) => Promise<ReadonlySet<string>>;
}): WaitQueue {
  const waiters = new Set<Waiter>();
  const closing = new AbortController();
  let polling = false;

  function wakeDue(): void {
    const due = [...waiters].filter((waiter) => waiter.due);
    due.sort((one, other) => one.turn - other.turn);
    for (const waiter of due.slice(0, WOKEN_AT_ONCE)) {
      waiter.wake.abort();
      waiters.delete(waiter);
    }
  }

  function left(gone: Iterable<string>): void {
    if (waiters.size === 0) return;
    const names = new Set(gone);
    for (const waiter of waiters) if (!waiter.for.isDisjointFrom(names)) waiter.due = true;
    wakeDue();
  }

  async function observation(): Promise<void> {
    polling = true;
    while (waiters.size > 0 && !closing.signal.aborted) {
      await given.pause(LOOK_MS, closing.signal);
      const names = new Set<string>();
      for (const waiter of waiters) {
        if (names.size >= LOOKED_AT_MAX) break;
        for (const name of waiter.for) names.add(name);
      }
      if (names.size === 0) continue;
      // A database that does not answer now is asked again; the waits end by themselves.
      const there = await given.stillBlocking([...names]).catch(() => names);
      left(names.difference(there));
      wakeDue();
    }
    polling = false;
  }

  return {
    async wait(for_, ms, turn) {
      if (closing.signal.aborted) return 'closed';
      if (waiters.size >= given.max || ms <= 0) return 'timed_out';
      const waiter = { for: new Set(for_), turn, due: false, wake: new AbortController() };
      waiters.add(waiter);
      if (!polling) void observation();
      await given.pause(ms, waiter.wake.signal);
      waiters.delete(waiter);
      if (closing.signal.aborted) return 'closed';
      return waiter.due ? 'notified' : 'timed_out';
    },
    notify: left,
    close() {
      closing.abort();
      for (const { wake } of waiters) wake.abort();
      waiters.clear();
    },
  };
}
