import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addressKey, isAddress, isTxHash } from '../../src/kernel/addresses.ts';
import { isId, makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { backoffMs } from '../../src/kernel/retry.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it('An id is a prefix and a UUIDv7 with the time', () => {
  const clock = manualClock(Date.UTC(2026, 10, 20));
  const id = makeIds(clock, systemRandom).next('op');
  expect(id).toMatch(/^op_/);
  expect(id.slice(3)).toMatch(UUID_V7);
  expect(Number.parseInt(id.slice(3).replace('-', '').slice(0, 12), 16)).toBe(clock.now());
  expect(isId('op', id)).toBe(true);
});

it('An id is greater than the one before, for 5,000 in one millisecond and after the clock jumps back', () => {
  const clock = manualClock();
  const ids = makeIds(clock, systemRandom);
  const made = Array.from({ length: 15_000 }, (_, i) => {
    if (i === 5_000) clock.advance(-60_000);
    if (i === 10_000) clock.advance(61_000);
    return ids.next('evt');
  });
  expect(made.toSorted()).toEqual(made);
  expect(new Set(made).size).toBe(made.length);
  expect(made.every((id) => isId('evt', id))).toBe(true);
});

it('An id is greater than the one before for any steps of the clock', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 })), fc.integer(), (steps, seed) => {
      const clock = manualClock();
      const ids = makeIds(clock, seededRandom(seed));
      const made = steps.map((step) => {
        clock.advance(step);
        return ids.next('dlv');
      });
      expect(made.toSorted()).toEqual(made);
    }),
  );
});

it('An id of the same seed and clock is the same', () => {
  const run = () => {
    const ids = makeIds(manualClock(), seededRandom(7));
    return [ids.next('op'), ids.next('key'), ids.next('rep')];
  };
  expect(run()).toEqual(run());
});

it.each([
  ['op', 'op_0190'],
  ['op', 'evt_01900000-0000-7000-8000-000000000000'],
  ['op', 'op_01900000-0000-4000-8000-000000000000'],
  ['op', 'op_01900000-0000-7000-c000-000000000000'],
  ['op', 'op_01900000-0000-7000-8000-00000000000G'],
  ['op', "op_01900000-0000-7000-8000-000000000000' or 1=1"],
  ['op', ''],
] as const)('An id with the prefix %s is not %j', (prefix, text) => {
  expect(isId(prefix, text)).toBe(false);
});

it('A backoff is between half and all of its step, and never longer than the cap', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2_000 }),
      fc.integer({ min: 1, max: 60_000 }),
      fc.integer({ min: 1, max: 86_400_000 }),
      fc.integer(),
      (failures, baseMs, capMs, seed) => {
        const wait = backoffMs(failures, baseMs, capMs, seededRandom(seed));
        const step = Math.min(capMs, baseMs * 2 ** Math.min(failures, 40));
        expect(wait).toBeGreaterThanOrEqual(Math.floor(step / 2));
        expect(wait).toBeLessThanOrEqual(step);
      },
    ),
  );
});

it('A random source gives the same numbers for the same seed, and others for another seed', () => {
  const stream = (seed: number) => {
    const random = seededRandom(seed);
    return Array.from({ length: 50 }, () => random.unit());
  };
  expect(stream(3)).toEqual(stream(3));
  expect(stream(3)).not.toEqual(stream(4));
  expect(stream(3).every((unit) => unit >= 0 && unit < 1)).toBe(true);
});

it('A random source gives the requested number of bytes', () => {
  expect(seededRandom(1).bytes(9)).toHaveLength(9);
  expect(systemRandom.bytes(32)).toHaveLength(32);
  expect(systemRandom.bytes(32)).not.toEqual(systemRandom.bytes(32));
});

it.each([
  ['0x'.padEnd(42, 'a'), true],
  ['x'.repeat(42), true],
  ['x'.repeat(41), false],
  ['x'.repeat(43), false],
  [' '.repeat(42), false],
  [`${'x'.repeat(41)}\n`, false],
  [`${'x'.repeat(41)}é`, false],
])('The text %j is an address: %s', (text, is) => {
  expect(isAddress(text)).toBe(is);
  expect(isTxHash(text + 'f'.repeat(24))).toBe(is);
});

it('Spellings of an address share one key', () => {
  expect(addressKey(`0xAb${'C'.repeat(38)}`)).toBe(addressKey(`0XaB${'c'.repeat(38)}`));
});
