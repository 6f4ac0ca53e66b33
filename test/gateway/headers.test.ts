import { expect, it } from 'vitest';
import { waitsUntil } from '../../src/gateway/http.ts';
import { isoText } from '../../src/kernel/clock.ts';

const NOW = Date.UTC(2026, 10, 21);
const DAY = 86_400_000;

it.each([
  [undefined, undefined, undefined],
  ['', undefined, undefined],
  ['return=minimal', isoText(NOW - 1), undefined],
  ['respond-asynchronously', undefined, undefined],
  ['respond-async', undefined, NOW + 60_000],
  ['Respond-Async', isoText(NOW + 5), NOW + 5],
  ['wait=10, respond-async;x=1', isoText(NOW + 7 * DAY), NOW + 7 * DAY],
])('A write with Prefer %j and Tallyhook-Expires %j waits until %j', (prefer, expires, until) => {
  expect(waitsUntil(prefer, expires, NOW, 60_000)).toBe(until);
});

it.each([
  '',
  'tomorrow',
  '1795132800',
  '2026-11-20T23:59:59Z',
  isoText(NOW),
  isoText(NOW + 7 * DAY + 1),
])('A write with Tallyhook-Expires %j is refused', (expires) => {
  expect(() => waitsUntil('respond-async', expires, NOW, 60_000)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  );
});
