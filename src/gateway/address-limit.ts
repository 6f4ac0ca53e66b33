/**
 * How often one remote address may ask for what needs no key: a token bucket for each, of two
 * seconds. Its memory is bounded: the addresses that were not heard for longest are forgotten, and
 * with them at most two seconds of patience.
 */
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';

const ADDRESSES_MAX = 10_000;
const BURST_S = 2;

export interface AddressLimit {
  /** Takes one request: 0 when it may pass, else the seconds to wait, at least 1. */
  take(address: string): number;
}

/** @param clock the steady clock, unless a test keeps its own time */
export function makeAddressLimit(perS: number, clock: Clock = { now: monotonicMs }): AddressLimit {
  const burst = Math.max(1, perS * BURST_S);
  /** In the order in which they were last heard. */
  const spent = new Map<string, { level: number; at: Instant }>();
  return {
    take(address) {
      const name = networkOf(address);
      const now = clock.now();
      const before = spent.get(name) ?? { level: 0, at: now };
      const level = Math.max(0, before.level - (Math.max(0, now - before.at) / 1000) * perS);
      spent.delete(name);
      if (spent.size >= ADDRESSES_MAX) {
        const [oldest] = spent.keys();
        if (oldest !== undefined) spent.delete(oldest);
      }
      const passes = level + 1 <= burst;
      spent.set(name, { level: passes ? level + 1 : level, at: now });
      return passes ? 0 : Math.max(1, Math.ceil((level + 1 - burst) / perS));
    },
  };
}

/** One IPv6 network of 64 bits is one caller; it could use any address in it. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  if (tail === undefined) return left.slice(0, 4).join(':');
  return [...left, '0', '0', '0', '0'].slice(0, 4).join(':');
}
