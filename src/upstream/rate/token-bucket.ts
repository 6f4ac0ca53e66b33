/**
 * A paced token bucket. App traffic takes tokens too and may leave a debt, but polls keep a share:
 * one may start at the latest `1 / (share · rate)` seconds after the last. A burst is taken from
 * the polls that follow it: no second has more than the rate, rounded up.
 */
import type { Instant } from '../../kernel/clock.ts';

/**
 * The most tokens that accumulate, and the greatest burst: two, or those of 50 ms. The observer
 * looks for due targets every 30 ms or so; with two each time, 60 of 150 polls a second were made.
 */
export function burstOf(perS: number): number {
  return Math.max(2, perS * 0.05);
}
/** The largest debt that app traffic can leave, in seconds of the rate. */
const DEBT_SECONDS = 10;
/** The time constant of a meter, in milliseconds. */
const SPAN_MS = 5_000;
const SECOND_MS = 1_000;
/** Tolerates the rounding of floating point. */
const WHOLE_TOKEN = 1 - 1e-9;

interface TokenBucket {
  /** Polls that may start now. */
  free(now: Instant): number;
  /** The earliest instant at which a poll may start. */
  nextAt(now: Instant): Instant;
  /** Takes a token for a poll; the caller has checked that one is free. */
  take(now: Instant): void;
  /** Counts a request of app traffic. */
  charge(now: Instant): void;
  /** Recent app traffic, in requests per second. */
  appPerS(now: Instant): number;
}

/**
 * @param perS the current rate, in requests per second
 * @param share the part of the rate that polls keep, 0 to 1
 */
export function makeTokenBucket(perS: () => number, share: number, start: Instant): TokenBucket {
  let level = burstOf(perS());
  let at = start;
  let lastPollAt = Number.NEGATIVE_INFINITY;
  /** When the polls of the last second started. */
  const recent: Instant[] = [];
  const app = makeMeter(start);

  const refill = (now: Instant) => {
    level = Math.min(burstOf(perS()), level + (Math.max(0, now - at) / 1000) * perS());
    at = Math.max(at, now);
  };
  const shareAt = () => lastPollAt + 1000 / (perS() * share);
  const perSecond = () => Math.max(1, Math.ceil(perS() - 1 + WHOLE_TOKEN));
  const inSecond = (now: Instant) => {
    while (recent[0] !== undefined && recent[0] <= now - SECOND_MS) recent.shift();
    return recent.length;
  };
  return {
    free(now) {
      refill(now);
      const left = perSecond() - inSecond(now);
      if (left <= 0) return 0;
      if (level >= WHOLE_TOKEN) return Math.min(left, Math.floor(level + 1 - WHOLE_TOKEN));
      return shareAt() <= now ? 1 : 0;
    },
    nextAt(now) {
      refill(now);
      const before = recent[inSecond(now) - perSecond()];
      const allowedAt = before === undefined ? now : before + SECOND_MS;
      if (level >= WHOLE_TOKEN) return allowedAt;
      return Math.max(allowedAt, Math.min(now + ((1 - level) / perS()) * 1000, shareAt()));
    },
    take(now) {
      refill(now);
      recent.push(now);
      // A poll of the share does not deepen the debt.
      level = Math.max(level - 1, Math.min(level, 0));
      lastPollAt = now;
    },
    charge(now) {
      refill(now);
      level = Math.max(level - 1, -DEBT_SECONDS * perS());
      app.count(now);
    },
    appPerS: (now) => app.perS(now),
  };
}

/** Events per second, averaged with exponential decay. */
export function makeMeter(start: Instant, spanMs = SPAN_MS) {
  let weight = 0;
  let at = start;
  const decay = (now: Instant) => {
    weight *= Math.exp(-Math.max(0, now - at) / spanMs);
    at = Math.max(at, now);
  };
  return {
    count(now: Instant) {
      decay(now);
      weight += 1;
    },
    perS(now: Instant): number {
      decay(now);
      return weight / (spanMs / 1000);
    },
  };
}
