/**
 * How fast we may ask: the rate that the service bears is learned. Pure.
 *
 * At first the rate doubles every ten clean seconds. The first throttling ends that, and CUBIC
 * takes over (polling study, 4.1 and 4.2): after a throttling at rate r the rate is 0.7 r, comes
 * back to r after K seconds, lingers there, and then probes beyond. Time counts from the end of the
 * silence that the service asked for, so that a long one does not end in a burst.
 */
import type { Instant } from '../../kernel/clock.ts';

export const BETA = 0.7;
/** Requests per second, per second cubed. */
export const C = 0.4;
/** Slower than this the control never gets; the service's deadlines are what stops us. */
export const RATE_MIN_PER_S = 0.2;
const DOUBLING_MS = 10_000;

/** Rates are requests per second of all daemons together. */
export interface Control {
  rate: number;
  lastMax: number | null;
  /** From when the rate recovers; null as long as nothing was throttled. */
  throttledAt: Instant | null;
  /** Since when there was neither a throttling nor a doubling. */
  quietSince: Instant;
}

/** The control at the start of a daemon, from what was kept or from the beginning. */
export function beginControl(
  kept: { rate: number; lastMax: number | null; throttledAt: Instant | null } | undefined,
  startRate: number,
  ceiling: number,
  now: Instant,
): Control {
  const rate = clamp(kept && kept.rate > 0 ? kept.rate : startRate, ceiling);
  const { lastMax = null, throttledAt = null } = kept ?? {};
  return { rate, lastMax, throttledAt, quietSince: now };
}

/** K: the seconds from a throttling at rate `lastMax` until that rate is reached again. */
export function recoverySeconds(lastMax: number): number {
  return Math.cbrt((lastMax * (1 - BETA)) / C);
}

/** The rate of CUBIC, unbounded, at an instant after a throttling at rate `lastMax`. */
export function cubicRate(lastMax: number, throttledAt: Instant, now: Instant): number {
  const seconds = Math.max(0, now - throttledAt) / 1000;
  return C * (seconds - recoverySeconds(lastMax)) ** 3 + lastMax;
}

/**
 * After a throttling.
 * @param measured the rate at which requests were sent, which may be less than was allowed
 * @param resumeAt when the silence ends that the service asked for
 */
export function onThrottle(control: Control, measured: number, resumeAt: Instant): Control {
  const lastMax = Math.max(RATE_MIN_PER_S, Math.min(measured, control.rate));
  const rate = Math.max(RATE_MIN_PER_S, BETA * lastMax);
  return { rate, lastMax, throttledAt: resumeAt, quietSince: resumeAt };
}

/**
 * After a request that was not throttled. The rate never falls here, and rises to at most twice
 * what was really used: what was not tried is not known to be borne.
 */
export function onSuccess(
  control: Control,
  measured: number,
  ceiling: number,
  now: Instant,
): Control {
  const { rate, lastMax, throttledAt, quietSince } = control;
  if (lastMax === null || throttledAt === null) {
    if (rate >= ceiling || now - quietSince < DOUBLING_MS) return control;
    return { ...control, rate: clamp(rate * 2, ceiling), quietSince: now };
  }
  const risen = Math.min(cubicRate(lastMax, throttledAt, now), 2 * measured);
  return risen > rate ? { ...control, rate: clamp(risen, ceiling) } : control;
}

function clamp(rate: number, ceiling: number): number {
  return Math.min(Math.max(rate, RATE_MIN_PER_S), ceiling);
}
