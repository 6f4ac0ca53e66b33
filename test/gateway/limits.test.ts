import { describe, expect, it } from 'vitest';
import { makeAddressLimit } from '../../src/gateway/limits.ts';
import { manualClock } from '../harness/manual-clock.ts';

/** A limit, and the seconds that it tells an address to wait; 0 when the request is allowed. */
function addressLimit(perS: number) {
  const clock = manualClock();
  const limit = makeAddressLimit(perS, clock);
  const waitOf = (address: string): unknown => {
    try {
      limit.check(address);
      return 0;
    } catch (error) {
      expect(error).toMatchObject({ code: 'too_many_requests' });
      return (error as { members: Record<string, unknown> }).members.retry_after_s;
    }
  };
  return { clock, waitOf };
}

describe('The limit of an address', () => {
  it('allows a burst of two seconds, and then its rate', () => {
    const { clock, waitOf } = addressLimit(5);
    const allowed = () => Array.from({ length: 20 }, () => waitOf('10.0.0.1')).filter((w) => !w);
    expect(allowed()).toHaveLength(10);
    expect(waitOf('10.0.0.1')).toBe(1);
    clock.advance(1_000);
    expect(allowed()).toHaveLength(5);
    clock.advance(60_000);
    expect(allowed()).toHaveLength(10);
  });

  it('names the seconds to wait at a rate below one per second', () => {
    const { waitOf } = addressLimit(0.1);
    expect([waitOf('a'), waitOf('a')]).toEqual([0, 10]);
  });

  it.each([
    ['10.0.0.1', '10.0.0.2', false],
    ['10.0.0.1', '::ffff:10.0.0.1', true],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['::1', '::2', true],
    ['2001:db8::1', '2001:db8:0:0:5::', true],
  ])('is shared by %s and %s: %s', (first, second, isShared) => {
    const { waitOf } = addressLimit(0.5);
    expect(waitOf(first)).toBe(0);
    expect(waitOf(second) !== 0).toBe(isShared);
  });

  it('is forgotten after requests of ten thousand other addresses', () => {
    const { waitOf } = addressLimit(0.5);
    expect([waitOf('first'), waitOf('first')]).toEqual([0, 2]);
    for (let i = 0; i < 9_999; i++) waitOf(`x${i}`);
    expect(waitOf('first')).toBe(2);
    for (let i = 0; i < 10_000; i++) waitOf(`y${i}`);
    expect(waitOf('first')).toBe(0);
  });
});
