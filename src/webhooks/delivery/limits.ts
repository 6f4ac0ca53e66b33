/**
 * How much of each endpoint's work is taken on, and in which order. Pure. A group of claims is
 * shared out over a ring of endpoints, so that a long backlog gets no more of it than a short one;
 * how far ahead of its sends an endpoint may be claimed grows with what it takes, and falls back at
 * the first trouble.
 */
import type { Instant } from '../../kernel/clock.ts';

/**
 * Sends at once to one endpoint: the cap, halved for each failure in a row down to one probe, and
 * shared among the daemons that live.
 */
export function inFlightMax(cap: number, consecutiveFailures: number, daemons: number): number {
  const halved = Math.floor(cap / 2 ** Math.min(consecutiveFailures, 30) / Math.max(1, daemons));
  return Math.max(1, halved);
}

/** What happened at an endpoint since it was last claimed from. */
export interface Flow {
  /** How many claims it may hold now. */
  window: number;
  finished: number;
  /** Whether something failed, or takes long. */
  troubled: boolean;
}

/**
 * The next window: doubled when it was used up without trouble, the bare in-flight cap after any.
 */
export function nextWindow(flow: Flow, inFlight: number, windowMax: number): number {
  if (flow.troubled) return inFlight;
  const grown = flow.finished * 2 >= flow.window ? flow.window * 2 : flow.window;
  return Math.max(inFlight, Math.min(grown, windowMax));
}

/**
 * The part of a second in which a rate may be used up at once: small, so that no second sees much
 * more than the rate.
 */
const BURST_MS = 100;
/** What division may lose; a whole step must count as one. */
const ROUNDING = 1e-6;

/**
 * How many may go now at `ratePerS` (GCRA), and the state after `n` of them went. State is the
 * instant until which the rate is used up.
 */
export function rateAllowance(pacedUntil: Instant | null, ratePerS: number, now: Instant) {
  const stepMs = 1000 / ratePerS;
  const from = Math.max(pacedUntil ?? 0, now);
  const free = Math.max(BURST_MS, stepMs) - (from - now);
  const allowed = Math.max(0, Math.floor(free / stepMs + ROUNDING));
  return { allowed, pacedUntilAfter: (n: number): Instant => Math.ceil(from + n * stepMs) };
}

/** When the rate lets the next one through. */
export function rateFreeAt(pacedUntil: Instant | null, ratePerS: number): Instant {
  const stepMs = 1000 / ratePerS;
  return Math.ceil((pacedUntil ?? 0) - Math.max(BURST_MS, stepMs) + stepMs);
}

/** The ring from just after `cursor`, at most `max` of it. */
export function fromRing<T extends { endpointId: string }>(
  ring: readonly T[],
  cursor: string,
  max: number,
): T[] {
  const sorted = [...ring].sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
  const start = sorted.findIndex(({ endpointId }) => endpointId > cursor);
  const turned = start <= 0 ? sorted : [...sorted.slice(start), ...sorted.slice(0, start)];
  return turned.slice(0, max);
}

/** Shares `total` over endpoints that want up to `room` each, evenly; in the order given. */
export function shareOut(rooms: readonly number[], total: number): number[] {
  const shares = rooms.map(() => 0);
  let left = total;
  for (let open = rooms.length; left > 0 && open > 0; ) {
    const each = Math.max(1, Math.floor(left / open));
    open = 0;
    rooms.forEach((room, i) => {
      const share = Math.min(each, room - (shares[i] ?? 0), left);
      shares[i] = (shares[i] ?? 0) + share;
      left -= share;
      if ((shares[i] ?? 0) < room) open++;
    });
  }
  return shares;
}
