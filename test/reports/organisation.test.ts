/** Whose report it is, and in which time zone people read it. */
import { unzipSync } from 'fflate';
import { beforeAll, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import type { Report } from '../../src/resources/reports/content.ts';
import { addr, HOUR, makeWorld, START, useWorld } from './world.ts';

/** Midnight of 1 January 2026 in Seoul. */
const SEOUL_DAY = START - 9 * HOUR;

const world = await useWorld(
  makeWorld({
    settings: { organisation: 'Ada & Söhne', timeZone: 'Asia/Seoul' },
  }),
);
let report: Report;
beforeAll(async () => {
  await world.drift(addr(1), -5n, { suspected_at: isoText(SEOUL_DAY) });
  report = await made(SEOUL_DAY);
});

const made = (from: number) => world.report(from);

it('The printed report names the organisation, and the days of its time zone', async () => {
  const page = String(await world.reports.renderReport(report.id, 'html'));
  expect(page).toContain('<title>Ada &amp; Söhne: Reconciliation 2026-01-01 to 2026-01-02');
  expect(page).toContain('<p class="owner">Ada &amp; Söhne</p>');
  expect(page).toContain('2026-01-02 00:00:00 (Asia/Seoul)');
  expect(page).toContain('All times are of the time zone Asia/Seoul.');
  expect(page).not.toMatch(/UTC|2025-12-31 15/);
});

it('With the address of the console, operations and wallets of the page link to it', async () => {
  const { id } = report;
  const linked = await makeWorld({ settings: { consoleUrl: 'https://t.example.com/"x"' } });
  await linked.drift(addr(1), -3n);
  const own = await linked.report();
  const page = String(await linked.reports.renderReport(own.id, 'html'));
  const base = 'https://t.example.com/&quot;x&quot;';
  expect(page).toContain(`<a href="${base}/wallets/${addr(1)}" target="_top">${addr(1)}</a>`);
  expect(page).toMatch(
    new RegExp(`<a href="${base}/drifts/(drf_[0-9a-f-]+)" target="_top">\\1</a>`),
  );
  expect(String(await world.reports.renderReport(id, 'html'))).not.toContain('<a ');
  await linked.drop();
});

it('A period that does not begin at midnight of the zone has its times in the title', async () => {
  const page = String(await world.reports.renderReport((await made(START)).id, 'html'));
  expect(page).toContain('Reconciliation 2026-01-01 09:00:00 to 2026-01-02 09:00:00');
});

it('The workbook has times of the zone, the CSV and the JSON have instants with an offset', async () => {
  const files = unzipSync((await world.reports.renderReport(report.id, 'xlsx')) as Uint8Array);
  const book = Object.values(files)
    .map((bytes) => Buffer.from(bytes).toString())
    .join('');
  expect(book).toContain('since (Asia/Seoul)');
  // Midnight in Seoul, in days since 1899-12-30.
  expect(book).toContain('<v>46023</v>');
  expect(book).not.toContain('2025-12-31T15:00:00.000Z');
  const csv = String(await world.reports.renderReport(report.id, 'csv'));
  expect(csv).toContain('report,organisation,Ada & Söhne,');
  expect(csv).toContain('report,time zone,Asia/Seoul,');
  expect(csv).toContain('report,from,2025-12-31T15:00:00.000Z,');
  const json = JSON.parse(String(await world.reports.renderReport(report.id, 'json')));
  expect(json.content).toMatchObject({ organisation: 'Ada & Söhne', time_zone: 'Asia/Seoul' });
  expect(json.content.period.from).toBe('2025-12-31T15:00:00.000Z');
});
