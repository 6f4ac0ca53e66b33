/**
 * Time. Only this file reads the machine's clock or sets timers; everything else takes a Clock. A
 * daemon uses `db/clock/`, which follows Postgres, so that the instants of several daemons can be
 * compared.
 */
import { uptime } from 'node:os';

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

export interface Clock {
  now(): Instant;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A monotonic count of milliseconds, for durations. */
export function monotonicMs(): number {
  return performance.now();
}

/** A count like `monotonicMs` that includes the time in which the machine was suspended. */
export function uptimeMs(): number {
  return uptime() * 1000;
}

/** RFC 3339 text in UTC, with milliseconds. */
export function isoText(at: Instant): string {
  return new Date(at).toISOString();
}

const RFC_3339 = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i;

/** Parses RFC 3339 text; undefined when it is not a valid instant. */
export function parseInstant(text: string): Instant | undefined {
  const day = RFC_3339.exec(text)?.[1];
  if (day === undefined) return undefined;
  // Date.parse reads 30 February as 2 March and 24:00 as the next day; both are refused here.
  const midnight = Date.parse(`${day}T00:00Z`);
  if (Number.isNaN(midnight) || !isoText(midnight).startsWith(day)) return undefined;
  const at = /T24/i.test(text) ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

/** Longer timers overflow and fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Resolves after `ms`, at most 24 days, or when the signal aborts. Never rejects. */
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
 * Calls `act` once after `ms`, at most 24 days, and returns a function that cancels it. The timer
 * does not keep the process alive.
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
