/**
 * Time. Only this file reads the machine's clock or sets timers; everything else takes a Clock. A
 * daemon uses `db/clock/`, which follows Postgres, so that the instants of several daemons can be
 * compared.
 */
import { uptime } from 'node:os';
import type { Instant } from './values.ts';

export type { Instant } from './values.ts';

export interface Clock {
  now(): Instant;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const systemClock: Clock = { now: () => Date.now() };

/** What a machine counts, in milliseconds. */
export interface MachineClocks {
  /** Since 1970; people and NTP may step it. */
  wallMs(): number;
  /** Never goes back, and stands still while the machine is suspended. */
  awakeMs(): number;
  /** Includes the time in which the machine was suspended; on some it has whole seconds only. */
  uptimeMs(): number;
}

export interface MachineCount {
  /** Never goes back, and includes the time in which the machine was suspended. */
  ms(): number;
  /**
   * How often the wall clock did not go on as the count of the machine: it was suspended or paused,
   * or its clock was set. What was known of other machines may be old then.
   */
  interruptions(): number;
}

/** Where the uptime has whole seconds. Deadlines may come that much early, never late. */
const UPTIME_ERROR_MS = 1_000;
/** Far less than any deadline; wall clock and count run at one pace. */
const DISAGREE_MS = 500;

/** The uptime is slow to read, and may jump when a container moves: the wall clock tells when. */
export function countMachine({ wallMs, awakeMs, uptimeMs }: MachineClocks): MachineCount {
  let wallAhead = wallMs() - awakeMs();
  let uptimeAhead = uptimeMs() - awakeMs();
  let suspendedMs = 0;
  let interruptions = 0;
  const ms = () => {
    const awake = awakeMs();
    const jumpMs = wallMs() - awake - wallAhead;
    if (Math.abs(jumpMs) > DISAGREE_MS) {
      const missedMs = uptimeMs() - awake - uptimeAhead;
      suspendedMs += Math.max(0, Math.min(jumpMs, missedMs + UPTIME_ERROR_MS));
      wallAhead += jumpMs;
      uptimeAhead += missedMs;
      interruptions++;
    }
    return awake + suspendedMs;
  };
  return {
    ms,
    interruptions() {
      ms();
      return interruptions;
    },
  };
}

/** The time that the machine was up, with a suspension. */
export function uptimeMs(): number {
  return uptime() * 1000;
}

export const machineCount = countMachine({
  wallMs: () => Date.now(),
  awakeMs: () => performance.now(),
  uptimeMs,
});

/** A count of milliseconds for durations and deadlines; see `MachineCount`. */
export const monotonicMs = machineCount.ms;

/** RFC 3339 text in UTC, with milliseconds. */
export function isoText(at: Instant): string {
  return new Date(at).toISOString();
}

export function isoTextOrNull(at: Instant | null | undefined): string | null {
  return at == null ? null : isoText(at);
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
