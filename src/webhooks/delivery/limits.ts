/**
 * How many deliveries of each endpoint are claimed and sent, and in which order. Pure. Claims are
 * distributed round-robin over the endpoints, so a long backlog gets no more of them than a short
 * one.
 */
import type { Instant } from '../../kernel/clock.ts';

/**
 * Concurrent sends to one endpoint: the cap, halved per consecutive failure and divided among the
 * living daemons; at least one.
 */
export function inFlightMax(cap: number, consecutiveFailures: number, daemons: number): number {
  const halved = Math.floor(cap / 2 ** Math.min(consecutiveFailures, 30) / Math.max(1, daemons));
  return Math.max(1, halved);
}

/** The burst of a rate limit, as time at that rate. */
const BURST_MS = 100;
/** Keeps a whole step from being lost to floating-point division. */
const ROUNDING = 1e-6;

/**
 * How many deliveries `ratePerS` allows now (GCRA), and the new state after `n` of them.
 * @param rateUsedUntil the state: the rate is used up until then
 */
export function rateAllowance(rateUsedUntil: Instant | null, ratePerS: number, now: Instant) {
  const stepMs = 1000 / ratePerS;
  const from = Math.max(rateUsedUntil ?? 0, now);
  const freeMs = Math.max(BURST_MS, stepMs) - (from - now);
  const allowed = Math.max(0, Math.floor(freeMs / stepMs + ROUNDING));
  return { allowed, rateUsedUntilAfter: (n: number): Instant => Math.ceil(from + n * stepMs) };
}

/** When the rate allows the next delivery. */
export function rateFreeAt(rateUsedUntil: Instant | null, ratePerS: number): Instant {
  const stepMs = 1000 / ratePerS;
  return Math.ceil((rateUsedUntil ?? 0) - Math.max(BURST_MS, stepMs) + stepMs);
}

/** At most `max` endpoints in id order, starting after `cursor` and wrapping around. */
export function roundRobin<T extends { endpointId: string }>(
  endpoints: readonly T[],
  cursor: string,
  max: number,
): T[] {
  const sorted = [...endpoints].sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
  const start = sorted.findIndex(({ endpointId }) => endpointId > cursor);
  const rotated = start <= 0 ? sorted : [...sorted.slice(start), ...sorted.slice(0, start)];
  return rotated.slice(0, max);
}

/**
 * The items with `n` reduced so that those of a group have no more in all than its room.
 * @param roomOf the room of the group of this item
 * @param beside what has a part of the rooms already
 */
export function shareByGroup<T extends { n: number }>(
  items: readonly T[],
  groupOf: (item: T) => string,
  roomOf: (item: T) => number,
  beside: readonly T[] = [],
): T[] {
  const shares = new Map<T, number>();
  const taken = Map.groupBy(beside, groupOf);
  for (const [name, group] of Map.groupBy(items, groupOf)) {
    const capacities = group.map(({ n }) => n);
    const room = group[0] ? roomOf(group[0]) : 0;
    const each = shareEvenly(capacities, room - total(taken.get(name) ?? []));
    for (const [i, item] of group.entries()) shares.set(item, each[i] ?? 0);
  }
  return items.map((item) => ({ ...item, n: shares.get(item) ?? 0 }));
}

export function total(items: readonly { n: number }[]): number {
  return items.reduce((sum, { n }) => sum + n, 0);
}

/** Divides `room` evenly over endpoints that take up to `capacities` each. */
export function shareEvenly(capacities: readonly number[], room: number): number[] {
  const shares = capacities.map(() => 0);
  let left = room;
  for (let open = capacities.length; left > 0 && open > 0; ) {
    const each = Math.max(1, Math.floor(left / open));
    open = 0;
    capacities.forEach((capacity, i) => {
      const share = Math.min(each, capacity - (shares[i] ?? 0), left);
      shares[i] = (shares[i] ?? 0) + share;
      left -= share;
      if ((shares[i] ?? 0) < capacity) open++;
    });
  }
  return shares;
}
