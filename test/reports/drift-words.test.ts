/** Open drifts in words of people, on every form of a report that they read. */
import { unzipSync } from 'fflate';
import { beforeAll, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { sentenceOf } from '../../src/resources/ledger/drift-words.ts';
import { localText } from '../../src/resources/local-time.ts';
import type { Report } from '../../src/resources/reports/content.ts';
import { addr, HOUR, makeWorld, START, useWorld } from './world.ts';

const WHY = 'none of our operations explains it';
/** From 22:23 to 22:24 in Seoul. */
const WINDOW = {
  window_from: isoText(START + 13 * HOUR + 23 * 60_000),
  window_to: isoText(START + 13 * HOUR + 24 * 60_000),
};

const world = await useWorld(makeWorld({ settings: { timeZone: 'Asia/Seoul' } }));
let report: Report;
beforeAll(async () => {
  await world.drift(addr(1), -3n, WINDOW);
  await world.drift(addr(2), 1n, { ...WINDOW, window_from: null });
  await world.drift(addr(3), 0n, { ...WINDOW, amount: null, amount_min: -4, amount_max: 2 });
  report = await world.report();
});

it('The printed report says how many tokens left which wallet when, in its time zone', async () => {
  const page = String(await world.reports.renderReport(report.id, 'html'));
  const when = 'on 2026-01-01 between 22:23:00 and 22:24:00';
  expect(page).toContain(`3 tokens left wallet ${addr(1)} ${when}; ${WHY}.`);
  expect(page).not.toContain('2026-01-01T13:2');
  expect(page).toContain(
    `1 token arrived at wallet ${addr(2)} before 2026-01-01 22:24:00; ${WHY}.`,
  );
  expect(page).toContain(
    `A change between -4 and 2 tokens happened to wallet ${addr(3)} ${when}; ${WHY}.`,
  );
});

it('The CSV says it with instants', async () => {
  const { window_from: from, window_to: to } = WINDOW;
  const csv = String(await world.reports.renderReport(report.id, 'csv'));
  expect(csv).toContain(`3 tokens left wallet ${addr(1)} between ${from} and ${to}; ${WHY}.`);
});

it('The workbook says it in the time zone of the report', async () => {
  const files = unzipSync((await world.reports.renderReport(report.id, 'xlsx')) as Uint8Array);
  const book = Object.values(files).map((bytes) => Buffer.from(bytes).toString());
  const when = 'on 2026-01-01 between 22:23:00 and 22:24:00';
  expect(book.join('')).toContain(`3 tokens left wallet ${addr(1)} ${when}; ${WHY}.`);
});

it('A window within an hour that the zone shows twice names the offsets of its ends', () => {
  const amounts = { amount: '-3', amount_min: '-3', amount_max: '-3' };
  const window = { window_from: '2026-10-25T00:30:00.000Z', window_to: '2026-10-25T01:30:00.000Z' };
  const time = (at: string) => localText(at, 'Europe/Berlin');
  expect(sentenceOf({ addr: addr(1), ...amounts, ...window }, { time })).toContain(
    'on 2026-10-25 between 02:30:00 +02:00 and 02:30:00 +01:00;',
  );
});

it('A window over midnight names both days', () => {
  const amounts = { amount: '-3', amount_min: '-3', amount_max: '-3' };
  const drift = { addr: addr(1), ...amounts, ...WINDOW };
  const days: Record<string, string> = {
    [WINDOW.window_from]: '2026-01-01 23:59:30',
    [WINDOW.window_to]: '2026-01-02 00:00:30',
  };
  expect(sentenceOf(drift, { time: (at) => days[at] ?? '' })).toContain(
    'between 2026-01-01 23:59:30 and 2026-01-02 00:00:30;',
  );
});
