/** How a report shows the ends of its period. */
import { expect, it } from 'vitest';
import { dayText } from '../../src/reports/render/local-time.ts';

it.each([
  ['at which a day begins is that day', 'Asia/Seoul', '2026-10-31T15:00:00Z', '2026-11-01'],
  ['within a day has its time', 'Asia/Seoul', '2026-10-31T15:00:01Z', '2026-11-01 00:00:01'],
  ['of the first midnight is the day', 'Atlantic/Azores', '2026-10-25T00:00:00Z', '2026-10-25'],
  [
    'of the second midnight is within the day',
    'Atlantic/Azores',
    '2026-10-25T01:00:00Z',
    '2026-10-25 00:00:00',
  ],
  ['of a day without midnight is the day', 'Africa/Cairo', '2026-04-23T22:00:00Z', '2026-04-24'],
])('An instant %s: %s %s', (_title, zone, at, text) => {
  expect(dayText(at, zone)).toBe(text);
});
