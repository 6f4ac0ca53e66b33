import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseRetryAfter, RETRY_AFTER_MAX_MS } from '../../src/kernel/retry.ts';

const NOW = Date.UTC(2026, 0, 1);

it.each<[string | undefined, number | undefined]>([
  ['0', NOW],
  ['1', NOW + 1000],
  [' 120 ', NOW + 120_000],
  ['1.5', NOW + 1500],
  ['3600', NOW + 3_600_000],
  ['86400', NOW + RETRY_AFTER_MAX_MS],
  ['999999999999999999999', NOW + RETRY_AFTER_MAX_MS],
  ['Thu, 01 Jan 2026 00:10:00 GMT', NOW + 600_000],
  ['Thursday, 01-Jan-26 00:10:00 GMT', NOW + 600_000],
  ['Thu Jan  1 00:10:00 2026', NOW + 600_000],
  ['Thu, 01 Jan 2020 00:00:00 GMT', NOW],
  ['Sat, 01 Jan 2039 00:00:00 GMT', NOW + RETRY_AFTER_MAX_MS],
  ['', undefined],
  ['-1', undefined],
  ['soon', undefined],
  ['2026-01-01', undefined],
  ['1e3', undefined],
  ['2026-01-01T00:10:00Z', undefined],
  ['Thu, 99 Foo 2026 00:10:00 GMT', undefined],
  [undefined, undefined],
])('A Retry-After of %j sets the deadline %j', (value, deadline) => {
  expect(parseRetryAfter(value, NOW, undefined)).toBe(deadline);
});

it('A wait of up to a day is never shortened', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 86_400 }), (seconds) => {
      expect(parseRetryAfter(String(seconds), NOW, undefined)).toBe(NOW + seconds * 1000);
    }),
  );
});

it('A date counts from the clock of its sender, not from ours', () => {
  const date = 'Thu, 01 Jan 2026 01:00:30 GMT';
  expect(parseRetryAfter(date, NOW, 'Thu, 01 Jan 2026 01:00:00 GMT')).toBe(NOW + 30_000);
  expect(parseRetryAfter(date, NOW + 7_200_000, 'Thu, 01 Jan 2026 01:00:00 GMT')).toBe(
    NOW + 7_230_000,
  );
  expect(parseRetryAfter(date, NOW, 'nonsense')).toBe(NOW + 3_630_000);
  expect(parseRetryAfter('30', NOW, 'Thu, 01 Jan 2026 01:00:00 GMT')).toBe(NOW + 30_000);
});
