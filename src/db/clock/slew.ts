/**
 * The rule that keeps time continuous when the database's clock steps, for example at a failover to
 * a server with another clock. The time of all daemons is database time plus a correction, which a
 * step sets and which then decays linearly to zero. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';

/** The one row of the table `clock`. `setAt` and `endsAt` are database time. */
export interface Correction {
  /** How many steps have been corrected. */
  steps: number;
  /** What is added to database time at `setAt`; it decays to zero at `endsAt`. */
  correctionMs: number;
  setAt: Instant;
  endsAt: Instant;
  /** The latest time that a daemon has reported. */
  highestAt: Instant;
}

/** Readings of several clocks, taken together. */
export interface Reading {
  correction: Correction;
  databaseAt: Instant;
  /** The largest possible error of `databaseAt`. */
  errorMs: number;
  /** The machine's count of milliseconds, and the time that it was up. */
  monotonicMs: number;
  uptimeMs: number;
}

/** Smaller steps are not corrected. */
export const TOLERANCE_MS = 2_000;

/**
 * How far time may differ from the pace of the database's clock. After a step back it is slower,
 * which only makes waits longer. It is hardly ever faster, because that shortens `Retry-After` and
 * the wait for quiescence.
 */
export const SLOWER_MAX = 0.1;
export const FASTER_MAX = 0.01;

export function correctionAt(
  { correctionMs, setAt, endsAt }: Correction,
  databaseAt: Instant,
): number {
  if (databaseAt >= endsAt) return 0;
  if (databaseAt <= setAt) return correctionMs;
  return (correctionMs * (endsAt - databaseAt)) / (endsAt - setAt);
}

/** The time of all daemons at a database time. */
export function timeAt(correction: Correction, databaseAt: Instant): Instant {
  return databaseAt + correctionAt(correction, databaseAt);
}

/**
 * The correction that undoes a step since the previous reading; undefined without a step. A daemon
 * that has just started finds only steps back, because a step forward looks like downtime to it.
 */
export function correctStep(reading: Reading, previous?: Reading): Correction | undefined {
  const { correction, databaseAt } = reading;
  const time = timeAt(correction, databaseAt);
  const tolerance = TOLERANCE_MS + reading.errorMs + (previous?.errorMs ?? 0);
  const { earliest, latest, elapsedMs } = expected(reading, previous);
  const reached = Math.max(earliest, correction.highestAt);
  if (time < reached - tolerance) return corrected(reading, reached);
  // A machine that was paused finds that other daemons have already reported the later time.
  const reachedByOthers = correction.highestAt + elapsedMs;
  if (time > Math.max(latest, reachedByOthers) + tolerance)
    return corrected(reading, Math.max(latest, correction.highestAt));
  return undefined;
}

/**
 * The time by the machine's own count since the previous reading. Two counts, because each has
 * machines on which it is wrong: one may miss that the machine was paused, the other may jump when
 * a container moves to another host.
 */
function expected(reading: Reading, previous: Reading | undefined) {
  if (!previous)
    return { earliest: Number.NEGATIVE_INFINITY, latest: Number.POSITIVE_INFINITY, elapsedMs: 0 };
  const counts = [
    reading.monotonicMs - previous.monotonicMs,
    reading.uptimeMs - previous.uptimeMs,
  ] as const;
  const after = (ms: number) => timeAt(previous.correction, previous.databaseAt + ms);
  const elapsedMs = Math.max(...counts);
  return { earliest: after(Math.min(...counts)), latest: after(elapsedMs), elapsedMs };
}

/** The correction with which time continues at `time`. */
function corrected({ correction, databaseAt }: Reading, time: Instant): Correction {
  const setAt = Math.round(databaseAt);
  const correctionMs = Math.round(time) - setAt;
  const pace = correctionMs > 0 ? SLOWER_MAX : FASTER_MAX;
  return {
    steps: correction.steps + 1,
    correctionMs,
    setAt,
    endsAt: setAt + Math.ceil(Math.abs(correctionMs) / pace),
    highestAt: Math.max(correction.highestAt, Math.round(time)),
  };
}
