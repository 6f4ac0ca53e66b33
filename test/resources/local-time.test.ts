/** How a report shows instants, and the ends of its period, in its time zone. */
import { expect, it } from 'vitest';
import { dayText, localText } from '../../src/resources/local-time.ts';

it.each([
  ['at which a day begins is that day', 'Asia/Seoul', '2026-10-31T15:00:00Z', '2026-11-01'],
  ['within a day has its time', 'Asia/Seoul', '2026-10-31T15:00:01Z', '2026-11-01 00:00:01'],
  ['of the first midnight is the day', 'Atlantic/Azores', '2026-10-25T00:00:00Z', '2026-10-25'],
  [
    'of the second midnight is within the day',
    'Atlantic/Azores',
    '2026-10-25T01:00:00Z',
    '2026-10-25 00:00:00 -01:00',
  ],
  ['of a day without midnight is the day', 'Africa/Cairo', '2026-04-23T22:00:00Z', '2026-04-24'],
])('An instant %s: %s %s', (_title, zone, at, text) => {
  expect(dayText(at, zone)).toBe(text);
});

it.each([
  ['before the hour that is shown twice', 'Europe/Berlin', '2026-10-24T23:59:59Z', '01:59:59'],
  ['in its first showing', 'Europe/Berlin', '2026-10-25T00:00:00Z', '02:00:00 +02:00'],
  ['in its second showing', 'Europe/Berlin', '2026-10-25T01:59:59.999Z', '02:59:59 +01:00'],
  ['after it', 'Europe/Berlin', '2026-10-25T02:00:00Z', '03:00:00'],
  ['when clocks go forward', 'Europe/Berlin', '2026-03-29T01:00:00Z', '03:00:00'],
  ['west of Greenwich', 'America/St_Johns', '2026-11-01T04:00:00Z', '01:30:00 -02:30'],
  ['of half an hour, first', 'Australia/Lord_Howe', '2026-04-04T14:59:00Z', '01:59:00 +11:00'],
  ['of half an hour, then', 'Australia/Lord_Howe', '2026-04-04T15:00:00Z', '01:30:00 +10:30'],
  ['where clocks stay', 'Asia/Seoul', '2026-10-25T00:30:00Z', '09:30:00'],
])('A time %s has its offset only if the zone shows it twice: %s %s', (_, zone, at, text) => {
  expect(localText(at, zone).split(' ').slice(1).join(' ')).toBe(text);
});
