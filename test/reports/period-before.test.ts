/** The movements of a report stand beside those of the period before. */
import { unzipSync } from 'fflate';
import { beforeAll, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, balancedWorld, DAY, HOUR, START, useWorld } from './world.ts';

/** Clocks in Berlin are set forward at 1:00 UTC on 29 March 2026. */
const ZONE = 'Europe/Berlin';
const world = await useWorld(balancedWorld({ settings: { timeZone: ZONE } }));
beforeAll(async () => {
  world.clock.set(Date.UTC(2027, 1, 1));
});

const made = (from: number, to: number) => world.report(from, to);

describe('The period before', () => {
  it.each([
    [
      'a month is the month before',
      '2026-02-28T23:00:00.000Z',
      '2026-03-31T22:00:00.000Z',
      '2026-01-31T23:00:00.000Z',
    ],
    [
      'a year is the year before',
      '2025-12-31T23:00:00.000Z',
      '2026-12-31T23:00:00.000Z',
      '2024-12-31T23:00:00.000Z',
    ],
    [
      'a day of 23 hours is the day before',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
      '2026-03-27T23:00:00.000Z',
    ],
    [
      'an hour is the hour before',
      '2026-05-01T10:00:00.000Z',
      '2026-05-01T11:00:00.000Z',
      '2026-05-01T09:00:00.000Z',
    ],
    [
      'a thousand years begins in 1970',
      '2000-01-01T00:00:00.000Z',
      '2999-01-01T00:00:00.000Z',
      '1970-01-01T00:00:00.000Z',
    ],
    [
      'all years begins with them and is empty',
      '0001-01-01T00:00:00.000Z',
      '2027-01-01T00:00:00.000Z',
      '0001-01-01T00:00:00.000Z',
    ],
  ])('of %s', async (_title, from, to, before) => {
    const { content } = await made(Date.parse(from), Date.parse(to));
    expect(content.movements.before).toEqual({ from: before, to: from, fees: '0' });
  });
});

it('Each movement has its figures of the period before, in every format', async () => {
  const next = START + DAY;
  const at = isoText(next + HOUR);
  const times = { recorded_at: at, sent_at: at, answered_at: at, effective_at: at };
  await world.operation({ ...times, to_addr: addr(1), amount: 7, reason_type: 'welcome' });
  await world.post();
  const report = await made(next, next + DAY);
  const before = (operations: number, amount: string, fees: string) => ({
    operations,
    amount,
    fees,
  });
  expect(report.content.movements.listed).toEqual([
    {
      kind: 'give',
      reason_type: 'welcome',
      operations: 1,
      amount: '7',
      fees: '0',
      before: before(1, '100', '0'),
    },
    {
      kind: 'receive_from',
      reason_type: 'shop',
      operations: 0,
      amount: '0',
      fees: '0',
      before: before(1, '30', '2'),
    },
    {
      kind: 'transfer',
      reason_type: null,
      operations: 0,
      amount: '0',
      fees: '0',
      before: before(1, '50', '3'),
    },
  ]);
  expect(report.content.fees).toBe('0');
  expect(report.content.movements.before).toMatchObject({ fees: '5' });
  const page = String(await world.reports.renderReport(report.id, 'html'));
  expect(page).toContain('Amount before');
  expect(page).toContain('Before: from 2026-01-01 01:00:00');
  const csv = String(await world.reports.renderReport(report.id, 'csv'));
  expect(csv).toMatch(/^movements before,receive_from,shop,1,30,2/m);
  const book = unzipSync((await world.reports.renderReport(report.id, 'xlsx')) as Uint8Array);
  expect(Buffer.from(book['xl/workbook.xml'] ?? []).toString()).toContain('movements before');
});
