/**
 * Name resolution for webhook connections. Every resolved address is checked, and the connection
 * goes to exactly those addresses, so no second lookup can return something else. Concurrent
 * lookups of one name share one query and a failure is cached briefly, because the system resolver
 * has few threads and a dead name must not occupy them.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { type Clock, type Instant, monotonicMs } from '../../kernel/clock.ts';
import { type AllowedRanges, isRefused } from '../endpoints/address.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}
/** All addresses of a name; may reject with an error that has a `code`. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

export const systemResolve: Resolve = (hostname) => systemLookup(hostname, { all: true });

export const BLOCKED_ADDRESS = 'BLOCKED_ADDRESS';
const FAILURE_CACHED_MS = 3_000;
const FAILURES_MAX = 1_000;

/** A `lookup` for `net.connect`: returns allowed addresses, or fails with `BLOCKED_ADDRESS`. */
export function checkedLookup(
  resolve: Resolve,
  allowed: AllowedRanges,
  clock: Clock = { now: monotonicMs },
): LookupFunction {
  const lookup = coalesced(resolve, clock);
  return (hostname, { family, all }, callback) => {
    const isUsable = (address: ResolvedAddress) =>
      !isRefused(address.address, allowed) &&
      ((family !== 4 && family !== 6) || address.family === family);
    lookup(hostname)
      .then((resolved) => {
        const usable = resolved.filter(isUsable);
        const first = usable[0];
        if (!first) throw Object.assign(new Error('no allowed address'), { code: BLOCKED_ADDRESS });
        if (all) callback(null, usable);
        else callback(null, first.address, first.family);
      })
      .catch((error: NodeJS.ErrnoException) => callback(error, ''));
  };
}

function coalesced(resolve: Resolve, clock: Clock): Resolve {
  const inFlight = new Map<string, Promise<ResolvedAddress[]>>();
  const failures = new Map<string, { until: Instant; error: unknown }>();
  return (hostname) => {
    const failure = failures.get(hostname);
    if (failure && failure.until > clock.now()) return Promise.reject(failure.error);
    const running = inFlight.get(hostname);
    if (running) return running;
    const started = resolve(hostname)
      .catch((error: unknown) => {
        if (failures.size >= FAILURES_MAX) failures.clear();
        failures.set(hostname, { until: clock.now() + FAILURE_CACHED_MS, error });
        throw error;
      })
      .finally(() => inFlight.delete(hostname));
    inFlight.set(hostname, started);
    return started;
  };
}
