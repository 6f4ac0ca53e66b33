/**
 * A paced token bucket. A burst is taken from the polls that follow it: no second has more than the
 * rate, rounded up.
 */
import type { Instant } from '../../kernel/clock.ts';

/**
 * The most tokens that accumulate, and the greatest burst: two, or those of 50 ms. The observer
 * looks for due targets every 30 ms or so; with two each time, 60 of 150 polls a second were made.
 */
export function burstOf(perS: number): number {
  return Math.max(2, perS * 0.05);
}
const SECOND_MS = 1_000;
/** Tolerates the rounding of floating point. */
const WHOLE_TOKEN = 1 - 1e-9;

interface TokenBucket {
  /** Polls that may start now. */
  free(now: Instant): number;
  /** The earliest instant at which a poll may start. */
  nextAt(now: Instant): Instant;
  /** Takes a token; none needs to be free, the polls that follow then start later. */
  take(now: Instant): void;
}

/** @param perS the current rate, in requests per second */
export function makeTokenBucket(perS: () => number, start: Instant): TokenBucket {
  let level = burstOf(perS());
  let at = start;
  /** When the polls of the last second started. */
  const recent: Instant[] = [];

  const refill = (now: Instant) => {
    level = Math.min(burstOf(perS()), level + (Math.max(0, now - at) / 1000) * perS());
    at = Math.max(at, now);
  };
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
      return Math.min(left, Math.max(0, Math.floor(level + 1 - WHOLE_TOKEN)));
    },
    nextAt(now) {
      refill(now);
      const before = recent[inSecond(now) - perSecond()];
      const allowedAt = before === undefined ? now : before + SECOND_MS;
      if (level >= WHOLE_TOKEN) return allowedAt;
      return Math.max(allowedAt, now + ((1 - level) / perS()) * 1000);
    },
    take(now) {
      refill(now);
      recent.push(now);
      level -= 1;
    },
  };
}

/** Events per second, averaged with exponential decay over that time. */
export function makeMeter(start: Instant, spanMs: number) {
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
