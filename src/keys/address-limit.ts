/** A token bucket per remote address, for requests without a known key. */
import { type Clock, type Instant, monotonicMs, pause } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';

const BURST_S = 2;
/** Beyond it the address that was idle for longest is dropped, and with it at most its burst. */
const ADDRESSES_MAX = 10_000;

/** A client that repeats at once is slowed by a late refusal. */
const REFUSED_AFTER_MS = 1_000;

export interface AddressLimit {
  /**
   * @param address undefined for a request without a connection, which is not limited
   * @throws Failure `too_many_requests`, after a second
   */
  take(address: string | undefined): Promise<void>;
  /** @throws Failure `too_many_requests` with the seconds to wait */
  check(address: string): void;
}

/** @param clock must be monotonic */
export function makeAddressLimit(perS: number, clock: Clock = { now: monotonicMs }): AddressLimit {
  const burst = Math.max(1, perS * BURST_S);
  /** Ordered by last request. */
  const buckets = new Map<string, { level: number; at: Instant }>();
  function check(address: string): void {
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
  }
  return {
    check,
    async take(address) {
      try {
        if (address !== undefined) check(address);
      } catch (refusal) {
        await pause(REFUSED_AFTER_MS);
        throw refusal;
      }
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
