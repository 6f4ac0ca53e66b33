/** How the console writes instants, and reads inputs of local time. */
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import {
  inputText,
  instantOf,
  instantText,
  setZone,
  zoneOfPage,
} from '../../src/console/web/kit/format.ts';

const readersZone = zoneOfPage();
afterEach(() => setZone());

it.each([
  ['UTC', '2026-11-22T14:03:07', '2026-11-22T14:03:07.000Z'],
  ['Asia/Seoul', '2026-11-01T00:00', '2026-10-31T15:00:00.000Z'],
  ['America/New_York', '2026-11-22T14:03', '2026-11-22T19:03:00.000Z'],
  ['Asia/Kolkata', '2026-11-22T14:03', '2026-11-22T08:33:00.000Z'],
  ['Europe/Berlin', '2026-03-29T01:59', '2026-03-29T00:59:00.000Z'],
  ['Europe/Berlin', '2026-03-29T03:00', '2026-03-29T01:00:00.000Z'],
  ['Europe/Berlin', '2026-10-25T03:00', '2026-10-25T02:00:00.000Z'],
  ['Europe/Berlin', '2026-10-25T01:59', '2026-10-24T23:59:00.000Z'],
  // Shown twice: the first time. Skipped: as much later.
  ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00.000Z'],
  ['America/New_York', '2026-03-08T02:30', '2026-03-08T07:30:00.000Z'],
  ['America/Santiago', '2026-09-06T00:00', '2026-09-06T04:00:00.000Z'],
  ['America/Havana', '2026-03-08T00:00', '2026-03-08T05:00:00.000Z'],
])('In %s an input that holds %s means %s', (zone, local, instant) => {
  setZone(zone);
  expect(instantOf(local)).toBe(instant);
});

it.each(['', 'tomorrow', '2026-02-30T00:00:99', '0002-11-01T00:00'])(
  'An input that holds %j means no instant',
  (local) => {
    expect(instantOf(local)).toBe('');
  },
);

it('A text that is no instant is shown as it is', () => {
  expect(instantText('since ever')).toBe('since ever');
});

it('An instant is read from its text again, but in the hour that clocks have twice', () => {
  const zones = ['UTC', 'Asia/Seoul', 'Australia/Lord_Howe', 'America/St_Johns', 'Pacific/Apia'];
  const seconds = fc.integer({ min: 86_400, max: 4_000_000_000 });
  fc.assert(
    fc.property(fc.constantFrom(...zones), seconds, (zone, at) => {
      setZone(zone);
      const read = Date.parse(instantOf(inputText(at * 1_000)));
      expect(inputText(read)).toBe(inputText(at * 1_000));
    }),
  );
});

it('Another zone of one text does not change that of the page', () => {
  expect(instantText('2026-11-22T14:03:07.900Z', 'Asia/Seoul')).toBe('2026-11-22 23:03:07');
  expect(zoneOfPage()).toBe(readersZone);
});
