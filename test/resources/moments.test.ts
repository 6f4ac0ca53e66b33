/** Dates of the books, as people write them. */
import { expect, it } from 'vitest';
import { parseMoment, parseSpan } from '../../src/resources/moments.ts';

it.each([
  ['2026-11-30', '2026-11-30', '2026-12-01'],
  ['2024-02-29', '2024-02-29', '2024-03-01'],
  ['2026-11', '2026-11-01', '2026-12-01'],
  ['2026-12', '2026-12-01', '2027-01-01'],
  ['2026-Q1', '2026-01-01', '2026-04-01'],
  ['2026-Q4', '2026-10-01', '2027-01-01'],
  ['2026', '2026-01-01', '2027-01-01'],
  ['1970', '1970-01-01', '1971-01-01'],
  ['9998', '9998-01-01', '9999-01-01'],
])('%s is from %s to %s', (text, from, to) => {
  expect(parseSpan(text)).toEqual({ from: { day: from }, to: { day: to } });
  expect(parseMoment(text)).toEqual({ day: from });
});

it.each(
  [
    ['', '0070', '1969', '9999', '2026-00', '2026-13', '2026-Q0', '2026-Q5', '2026-02-29'],
    ['2026-11-00', '2026-11-31', '2026-1', '2026-11-1', ' 2026', '2026/11', '202611', 'yesterday'],
    ['2026-11-01T00:00:00', '1969-12-31T23:59:59Z', '9999-12-31T23:59:59-01:00'],
  ].flat(),
)('%j is no date of the books', (text) => {
  expect(parseMoment(text)).toBeUndefined();
  expect(parseSpan(text)).toBeUndefined();
});

it('An instant is itself, and no period', () => {
  const text = '2026-11-01T09:00:00+09:00';
  expect(parseMoment(text)).toEqual({ at: Date.UTC(2026, 10, 1) });
  expect(parseSpan(text)).toBeUndefined();
});
