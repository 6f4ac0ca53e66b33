/**
 * Time as an argument. Everything that needs the time is given a Clock; this is the only file that
 * reads the machine's clock or sets a timer.
 *
 * Instants are epoch milliseconds (`number`). Against a database the daemon uses `db/clock.ts`,
 * which follows Postgres time, so that instants compared across daemons come from one clock.
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

const RFC_3339 = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;

/** The instant that an RFC 3339 text names, or undefined when it names none. */
export function parseInstant(text: string): Instant | undefined {
  const day = RFC_3339.exec(text)?.[1];
  if (day === undefined) return undefined;
  // Date.parse takes 30 February for 2 March, and 24:00 for the next day: neither is named here.
  const midnight = Date.parse(`${day}T00:00Z`);
  if (Number.isNaN(midnight) || !isoText(midnight).startsWith(day)) return undefined;
  const at = /T24/i.test(text) ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

/** Longer timers overflow and would fire at once; a wait that long ends early instead. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Resolves after `ms` (24 days at most), or at once when the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, TIMER_MAX_MS));
    signal?.addEventListener('abort', done, { once: true });
  });
}

/**
 * Calls `act` once after `ms` (24 days at most); the answer cancels it. The timer does not keep the
 * process alive.
 */
export function after(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, Math.min(ms, TIMER_MAX_MS));
  timer.unref();
  return () => clearTimeout(timer);
}

/**
 * Settles as `work` does, or as `late` does when `ms` pass or the signal aborts first; `late` may
 * throw. `work` itself is not stopped.
 */
export function withDeadline<T, L>(
  work: PromiseLike<T>,
  ms: number,
  late: () => L,
  signal?: AbortSignal,
): Promise<T | L> {
  const { promise, resolve, reject } = Promise.withResolvers<T | L>();
  const expire = () => void Promise.try(late).then(resolve, reject);
  const cancel = after(ms, expire);
  if (signal?.aborted) expire();
  signal?.addEventListener('abort', expire, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => {
    cancel();
    signal?.removeEventListener('abort', expire);
  });
}
