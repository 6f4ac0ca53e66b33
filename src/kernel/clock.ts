/**
 * Time as an argument. Everything that needs the time is given a Clock; this is the only file that
 * reads the machine's clock or sets a timer.
 *
 * Instants are epoch milliseconds (`number`). Against a database the daemon uses `db/clock.ts`, which
 * follows Postgres time, so that instants compared across daemons come from one clock.
 */

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

export interface Clock {
  /** The present, in epoch milliseconds. */
  now(): Instant;
}

/** The machine's own clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** A steadily rising count of milliseconds, for measuring durations; unrelated to any calendar. */
export function monotonicMs(): number {
  return performance.now();
}

/** RFC 3339 UTC text of an instant, with milliseconds. */
export function isoText(at: Instant): string {
  return new Date(at).toISOString();
}

/** The instant that an RFC 3339 text names, or undefined when it names none. */
export function parseInstant(text: string): Instant | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i.test(text))
    return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

/** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** Calls `act` once after `ms`; the answer cancels it. The timer does not keep the process alive. */
export function after(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
