/** How often one address may ask without a key, and how much is remembered of it. */
import { describe, expect, it, test } from 'vitest';
import { makeAddressLimit } from '../../src/gateway/address-limit.ts';
import { manualClock } from '../harness/manual-clock.ts';

describe('An address', () => {
  test('May ask for two seconds at once, and then as often as it is allowed', () => {
    const clock = manualClock();
    const limit = makeAddressLimit(5, clock);
    const passed = () => Array.from({ length: 20 }, () => limit.take('10.0.0.1')).filter((w) => !w);
    expect(passed()).toHaveLength(10);
    expect(limit.take('10.0.0.1')).toBe(1);
    clock.advance(1_000);
    expect(passed()).toHaveLength(5);
    clock.advance(60_000);
    expect(passed()).toHaveLength(10);
  });

  test('Hears how long to wait when it may ask seldom', () => {
    const limit = makeAddressLimit(0.1, manualClock());
    expect(limit.take('a')).toBe(0);
    expect(limit.take('a')).toBe(10);
  });

  it.each([
    ['10.0.0.1', '10.0.0.2', false],
    ['10.0.0.1', '::ffff:10.0.0.1', true],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['::1', '::2', true],
    ['2001:db8::1', '2001:db8:0:0:5::', true],
  ])('%s and %s are one caller: %s', (one, other, same) => {
    const limit = makeAddressLimit(0.5, manualClock());
    expect(limit.take(one)).toBe(0);
    expect(limit.take(other) > 0).toBe(same);
  });

  test('Is forgotten when ten thousand others asked since', () => {
    const limit = makeAddressLimit(0.5, manualClock());
    expect(limit.take('first')).toBe(0);
    expect(limit.take('first')).toBe(2);
    for (let i = 0; i < 9_999; i++) limit.take(`x${i}`);
    expect(limit.take('first')).toBe(2);
    for (let i = 0; i < 10_000; i++) limit.take(`y${i}`);
    expect(limit.take('first')).toBe(0);
  });
});
