/**
 * Writes that wait for others to end. This process notifies of those that end here; one shared
 * query finds those that other daemons end. Waiters are woken in order of arrival, a few at a time,
 * because each may conflict with the next. Every wait ends in time, and their number is limited.
 */
import type { pause } from '../../kernel/clock.ts';

type Woken = 'notified' | 'timed_out' | 'closed';

interface WaitQueue {
  /**
   * Waits until one of these names is gone, at most `ms`; it times out at once when too many wait,
   * in all or for these names. The waiter with the lowest `arrival` is woken first.
   */
  wait(names: readonly string[], ms: number, arrival: number): Promise<Woken>;
  /** Wakes those that wait for one of these names. */
  notify(gone: Iterable<string>): void;
  /** Ends every wait, also later ones. */
  close(): void;
}

interface Waiter {
  names: Set<string>;
  arrival: number;
  /** One of its names is gone. */
  due: boolean;
  wake: AbortController;
}

const POLL_MS = 75;
const WAKE_MAX = 32;
const POLLED_MAX = 2_000;

/**
 * @param deps.maxPerName how many may wait for one name
 * @param deps.stillBlocking which names are not gone; after an error the next poll asks again
 */
export function makeWaitQueue(deps: {
  max: number;
  maxPerName: number;
  pause: typeof pause;
  stillBlocking: (names: string[]) => Promise<ReadonlySet<string>>;
}): WaitQueue {
  const waiters = new Set<Waiter>();
  const closing = new AbortController();
  let polling = false;

  function wakeDue(): void {
    const due = [...waiters].filter((waiter) => waiter.due);
    due.sort((one, other) => one.arrival - other.arrival);
    for (const waiter of due.slice(0, WAKE_MAX)) {
      waiter.wake.abort();
      waiters.delete(waiter);
    }
  }

  function notify(gone: Iterable<string>): void {
    if (waiters.size === 0) return;
    const names = new Set(gone);
    for (const waiter of waiters) if (!waiter.names.isDisjointFrom(names)) waiter.due = true;
    wakeDue();
  }

  async function poll(): Promise<void> {
    polling = true;
    while (waiters.size > 0 && !closing.signal.aborted) {
      await deps.pause(POLL_MS, closing.signal);
      const names = new Set<string>();
      for (const waiter of waiters) {
        if (names.size >= POLLED_MAX) break;
        for (const name of waiter.names) names.add(name);
      }
      if (names.size === 0) continue;
      const blocking = await deps.stillBlocking([...names]).catch(() => names);
      notify(names.difference(blocking));
      wakeDue();
    }
    polling = false;
  }

  return {
    async wait(names, ms, arrival) {
      if (closing.signal.aborted) return 'closed';
      if (waiters.size >= deps.max || ms <= 0) return 'timed_out';
      const alike = [...waiters].filter((waiter) => names.some((name) => waiter.names.has(name)));
      if (alike.length >= deps.maxPerName) return 'timed_out';
      const waiter = { names: new Set(names), arrival, due: false, wake: new AbortController() };
      waiters.add(waiter);
      if (!polling) void poll();
      await deps.pause(ms, waiter.wake.signal);
      waiters.delete(waiter);
      if (closing.signal.aborted) return 'closed';
      return waiter.due ? 'notified' : 'timed_out';
    },
    notify,
    close() {
      closing.abort();
      for (const { wake } of waiters) wake.abort();
      waiters.clear();
    },
  };
}
