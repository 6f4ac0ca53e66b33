/** What is due later, by the world's clock, in order of time and then of arrival. No timers. */
import type { Instant } from '../../kernel/clock.ts';

export interface Agenda {
  add(at: Instant, act: () => void): void;
  /** Takes the first entry that is due at `now`, or undefined. */
  take(now: Instant): { at: Instant; act: () => void } | undefined;
  clear(): void;
}

export function makeAgenda(): Agenda {
  let entries: { at: Instant; act: () => void }[] = [];
  return {
    add(at, act) {
      entries.splice(placeAfter(entries, at), 0, { at, act });
    },
    take(now) {
      const first = entries[0];
      return first && first.at <= now ? entries.shift() : undefined;
    },
    clear() {
      entries = [];
    },
  };
}

/** Where an entry of that instant belongs: behind all that are due no later. */
function placeAfter(entries: readonly { at: Instant }[], at: Instant): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle]?.at ?? at) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
