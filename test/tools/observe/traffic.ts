/** What the service received: no poll before a deadline, and none beyond the budget. */
import { addressKey } from '../../../src/kernel/addresses.ts';
import type { Received } from '../../../src/sandbox/state/request-log.ts';
import type { Throttle } from './changes.ts';
import { TOKENS } from './history.ts';
import type { World } from './world.ts';

export interface Traffic {
  polls: number;
  /** The most polls in any second. */
  worstSecond: number;
  /** Answers that set a deadline, and polls sent before it. */
  deadlines: number;
  early: string[];
  /** Number of the newest request that was counted. */
  counted: number;
  recent: number[];
  blockedUntil: number;
  throttles: Throttle[];
}

export function newTraffic(): Traffic {
  return {
    polls: 0,
    worstSecond: 0,
    deadlines: 0,
    early: [],
    counted: 0,
    recent: [],
    blockedUntil: 0,
    throttles: [],
  };
}

/** Counts what the service received since the last call; its own log is bounded. */
export function countTraffic({ sandbox, history }: World, traffic: Traffic): void {
  const received = sandbox.control.requests(traffic.counted, 100_000);
  traffic.counted = received.at(-1)?.n ?? traffic.counted;
  const polls = received.filter(({ path }) => !path.startsWith('/v1/oauth'));
  // What was under way when a deadline came is not early.
  for (const at of new Set(polls.map((poll) => poll.at))) {
    const together = polls.filter((poll) => poll.at === at);
    if (at < traffic.blockedUntil)
      traffic.early.push(...together.map(({ path }) => `${at - traffic.blockedUntil} ms ${path}`));
    for (const poll of together) count(traffic, poll);
  }
  for (const { at, query } of polls.filter(hasFailed)) {
    const addr = new URLSearchParams(query).get('addr');
    history.failures.push({ at, of: addr === null ? TOKENS : addressKey(addr) });
  }
}

/** Stale lists and shifted pages are answers like any other. */
function hasFailed({ fault, status }: Received): boolean {
  return status !== 200 || ['truncated', 'garbled'].includes(fault ?? '');
}

function count(traffic: Traffic, { at, fault }: Received): void {
  traffic.polls += 1;
  traffic.recent = [...traffic.recent.filter((other) => other > at - 1_000), at];
  traffic.worstSecond = Math.max(traffic.worstSecond, traffic.recent.length);
  if (fault !== 'throttle') return;
  const throttle = traffic.throttles.shift();
  if (!throttle || throttle.form === 'none') return;
  traffic.deadlines += 1;
  const until = at + throttle.seconds * 1_000;
  const deadline = throttle.form === 'date' ? Math.floor(until / 1_000) * 1_000 : until;
  traffic.blockedUntil = Math.max(traffic.blockedUntil, deadline);
}
