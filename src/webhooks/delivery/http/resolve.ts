/**
 * Name resolution for webhook connections. Every resolved address is checked, and the connection
 * goes to exactly those addresses, so no second lookup can return something else. Names are
 * resolved by DNS queries of our own, one try within a deadline: the system resolver has four
 * threads, which names without an answer would occupy, while the client of the service and Postgres
 * wait for them. Concurrent lookups of one name share one query, and a failure is cached briefly.
 */
import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP, type LookupFunction } from 'node:net';
import { type Clock, type Instant, monotonicMs, pause } from '../../../kernel/clock.ts';
import { type AllowedRanges, isRefused } from '../../endpoints/address.ts';

interface ResolvedAddress {
  address: string;
  family: number;
}
/** All addresses of a name; may reject with an error that has a `code`. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

const PROCESS: Clock = { now: monotonicMs };
const LOOKUP_TIMEOUT_MS = 5_000;
/** How long the addresses of one family wait for those of the other. */
const OTHER_FAMILY_MS = 100;

/** How long the system's name servers and hosts file are used before they are read again. */
const READ_EVERY_MS = 60_000;

/**
 * Resolves by the hosts file, or else by DNS.
 * @param servers instead of those of the system
 */
export function makeResolve(
  options: {
    timeoutMs?: number;
    servers?: readonly string[];
    hosts?: () => string;
    clock?: Clock;
  } = {},
): Resolve {
  const { timeoutMs = LOOKUP_TIMEOUT_MS, servers, hosts = readHosts, clock = PROCESS } = options;
  const read = () => {
    const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
    if (servers) resolver.setServers(servers);
    return { resolver, known: parseHosts(hosts()), until: clock.now() + READ_EVERY_MS };
  };
  let system = read();
  return async (hostname) => {
    if (clock.now() >= system.until) system = read();
    const { resolver, known } = system;
    const name = hostname.toLowerCase().replace(/\.$/, '');
    const local = known.get(name);
    if (local) return local;
    const ipv6 = addresses(resolver.resolve6(name), 6);
    const ipv4 = await addresses(resolver.resolve4(name), 4);
    const others = ipv4.length === 0 ? ipv6 : Promise.race([ipv6, pause(OTHER_FAMILY_MS)]);
    const all = [...ipv4, ...((await others) ?? [])];
    if (all.length > 0) return all;
    throw Object.assign(new Error('the name has no address'), { code: 'ENOTFOUND' });
  };
}

/** None when the query fails: the other family may have some. */
async function addresses(query: Promise<string[]>, family: 4 | 6): Promise<ResolvedAddress[]> {
  try {
    return (await query).map((address) => ({ address, family }));
  } catch {
    return [];
  }
}

function readHosts(): string {
  try {
    return readFileSync('/etc/hosts', 'utf8');
  } catch {
    return '';
  }
}

/** The addresses by name; `localhost` has its own in any case. */
function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const known = new Map<string, ResolvedAddress[]>();
  for (const line of `${text}\n127.0.0.1 localhost`.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((text) => text.toLowerCase())) {
      const before = known.get(name) ?? [];
      if (before.every((each) => each.address !== address))
        known.set(name, [...before, { address, family }]);
    }
  }
  return known;
}

export const BLOCKED_ADDRESS = 'BLOCKED_ADDRESS';
const FAILURE_CACHED_MS = 3_000;
const FAILURES_MAX = 1_000;

/** A `lookup` for `net.connect`: returns allowed addresses, or fails with `BLOCKED_ADDRESS`. */
export function checkedLookup(
  resolve: Resolve,
  allowed: AllowedRanges,
  clock = PROCESS,
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
