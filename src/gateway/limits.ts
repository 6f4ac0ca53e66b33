/**
 * Limits on unauthenticated requests: a token bucket per remote address, and slots for requests
 * that run at once.
 */
import { type Clock, type Instant, monotonicMs } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';

const BURST_S = 2;
/** Beyond it the address that was idle for longest is dropped, and with it at most its burst. */
const ADDRESSES_MAX = 10_000;

export interface AddressLimit {
  /** @throws Failure `too_many_requests` with the seconds to wait */
  check(address: string): void;
}

/** @param clock must be monotonic */
export function makeAddressLimit(perS: number, clock: Clock = { now: monotonicMs }): AddressLimit {
  const burst = Math.max(1, perS * BURST_S);
  /** Ordered by last request. */
  const buckets = new Map<string, { level: number; at: Instant }>();
  return {
    check(address) {
      const network = networkOf(address);
      const now = clock.now();
      const before = buckets.get(network) ?? { level: 0, at: now };
      const level = Math.max(0, before.level - (Math.max(0, now - before.at) / 1000) * perS);
      buckets.delete(network);
      if (buckets.size >= ADDRESSES_MAX) {
        const [oldest] = buckets.keys();
        if (oldest !== undefined) buckets.delete(oldest);
      }
      const isAllowed = level + 1 <= burst;
      buckets.set(network, { level: isAllowed ? level + 1 : level, at: now });
      if (isAllowed) return;
      const wait = Math.max(1, Math.ceil((level + 1 - burst) / perS));
      throw new Failure('too_many_requests', undefined, { retry_after_s: wait });
    },
  };
}

/** A client may use every address of its IPv6 network of 64 bits, so these share one bucket. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  if (tail === undefined) return left.slice(0, 4).join(':');
  return [...left, '0', '0', '0', '0'].slice(0, 4).join(':');
}

export interface Slots {
  /** @throws Failure `too_many_requests` when all slots are taken */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function makeSlots(max: number): Slots {
  let taken = 0;
  return {
    async run(work) {
      if (taken >= max) throw new Failure('too_many_requests');
      taken++;
      try {
        return await work();
      } finally {
        taken--;
      }
    },
  };
}
