/**
 * Names to addresses at connect time. Every address that a name resolves to is vetted, and the
 * connection is made to exactly those addresses: there is no second look-up that could answer
 * something else. Equal look-ups under way are one, and a failed one is remembered for a moment,
 * because the system resolver has few threads and a dead name must not occupy them.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { type Clock, type Instant, monotonicMs } from '../../kernel/clock.ts';
import { type AllowedRanges, isRefused } from './address.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}
/** All addresses of a name. May reject with an error that has a `code`. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

/** The resolver of the operating system. */
export const systemResolve: Resolve = (hostname) => systemLookup(hostname, { all: true });

export const BLOCKED_ADDRESS = 'BLOCKED_ADDRESS';
const FAILED_FOR_MS = 3_000;
const NAMES_MAX = 1_000;

/**
 * A look-up for `net.connect` that answers allowed addresses only, or fails with `BLOCKED_ADDRESS`.
 */
export function vettedLookup(
  resolve: Resolve,
  allowed: AllowedRanges,
  clock: Clock = { now: monotonicMs },
): LookupFunction {
  const once = shared(resolve, clock);
  return (hostname, options, callback) => {
    once(hostname)
      .then((found) => {
        const wanted = options.family === 4 || options.family === 6 ? options.family : 0;
        const vetted = found.filter(({ address }) => !isRefused(address, allowed));
        const usable = vetted.filter(({ family }) => wanted === 0 || family === wanted);
        const first = usable[0];
        if (!first) throw Object.assign(new Error('no allowed address'), { code: BLOCKED_ADDRESS });
        if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      })
      .catch((error: NodeJS.ErrnoException) => callback(error, ''));
  };
}

function shared(resolve: Resolve, clock: Clock): Resolve {
  const underWay = new Map<string, Promise<ResolvedAddress[]>>();
  const failed = new Map<string, { until: Instant; error: unknown }>();
  return (hostname) => {
    const bad = failed.get(hostname);
    if (bad && bad.until > clock.now()) return Promise.reject(bad.error);
    const running = underWay.get(hostname);
    if (running) return running;
    const started = resolve(hostname)
      .catch((error: unknown) => {
        if (failed.size >= NAMES_MAX) failed.clear();
        failed.set(hostname, { until: clock.now() + FAILED_FOR_MS, error });
        throw error;
      })
      .finally(() => underWay.delete(hostname));
    underWay.set(hostname, started);
    return started;
  };
}
