/**
 * The paced token bucket: at most two looks at once, then one for each token that time brings. App
 * traffic takes tokens too and may leave a debt, but looks keep their share: there is always one
 * after `1 / (share · rate)` seconds. Pure state over instants; nothing waits in here.
 */
import type { Instant } from '../../kernel/clock.ts';

/** Tokens that may gather while nobody asks: the longest burst. */
export const BURST = 2;
/** The largest debt that app traffic can leave, in seconds of the rate. */
const DEBT_SECONDS = 10;
/** The span over which rates are measured, in milliseconds. */
const SPAN_MS = 5000;
/** What floating point leaves of a whole token counts as one. */
const WHOLE_TOKEN = 1 - 1e-9;

export interface Pace {
  /** Looks that may start now: 0, 1 or 2. */
  free(now: Instant): number;
  /** The earliest instant at which a look may start. */
  nextAt(now: Instant): Instant;
  /** Takes a token for a look; the caller has seen that one is free. */
  take(now: Instant): void;
  /** Counts a request of app traffic. */
  charge(now: Instant): void;
  /** Sets the rate from now on, in requests per second. */
  setRate(rate: number, now: Instant): void;
  /** Requests per second sent lately: app traffic, and everything. */
  measured(now: Instant): { app: number; all: number };
}

/** @param share the part of the rate that looks keep, 0 to 1 */
export function makePace(rate: number, share: number, start: Instant): Pace {
  let perS = rate;
  let level = BURST;
  let at = start;
  let lastReadAt = Number.NEGATIVE_INFINITY;
  const app = makeMeter(start);
  const all = makeMeter(start);

  const settle = (now: Instant) => {
    level = Math.min(BURST, level + (Math.max(0, now - at) / 1000) * perS);
    at = Math.max(at, now);
  };
  const shareAt = () => lastReadAt + 1000 / (perS * share);
  return {
    free(now) {
      settle(now);
      if (level >= WHOLE_TOKEN) return Math.floor(level + 1 - WHOLE_TOKEN);
      return shareAt() <= now ? 1 : 0;
    },
    nextAt(now) {
      settle(now);
      if (level >= WHOLE_TOKEN) return now;
      return Math.max(now, Math.min(now + ((1 - level) / perS) * 1000, shareAt()));
    },
    take(now) {
      settle(now);
      // A look of the share is paid for by nobody: a debt is not deepened by it.
      level = Math.max(level - 1, Math.min(level, 0));
      lastReadAt = now;
      all.count(now);
    },
    charge(now) {
      settle(now);
      level = Math.max(level - 1, -DEBT_SECONDS * perS);
      app.count(now);
      all.count(now);
    },
    setRate(next, now) {
      settle(now);
      perS = next;
    },
    measured: (now) => ({ app: app.perS(now), all: all.perS(now) }),
  };
}

/** Events per second, each forgotten exponentially. */
function makeMeter(start: Instant) {
  let weight = 0;
  let at = start;
  const fade = (now: Instant) => {
    weight *= Math.exp(-Math.max(0, now - at) / SPAN_MS);
    at = Math.max(at, now);
  };
  return {
    count(now: Instant) {
      fade(now);
      weight += 1;
    },
    perS(now: Instant): number {
      fade(now);
      return weight / (SPAN_MS / 1000);
    },
  };
}
