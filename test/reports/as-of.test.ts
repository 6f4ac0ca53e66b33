/** A report is as of the end of its period, not of the minute it was made. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { NO_LINES } from '../../src/reports/queries/lines.ts';
import { renderCsv, renderJson } from '../../src/reports/render/formats.ts';
import { renderHtml } from '../../src/reports/render/html.ts';
import { addr, balancedWorld, DAY, HOUR, START, timesAt, useEachWorld } from './world.ts';

const END = START + DAY;
const world = useEachWorld(balancedWorld);

describe('A report of a period that has ended', () => {
  beforeEach(() => world.clock.set(END + 3 * DAY));

  it('has the figures of its end, also after later effects', async () => {
    const first = (await world.report()).content;
    await world.operation({ ...timesAt(END), amount: 7 });
    await world.post();
    await world.sql(`update tallyhook.wallets set observed_balance = 157,
      observed_at = '${isoText(world.clock.now())}',
      observation_ended_at = '${isoText(world.clock.now())}' where addr = '${addr(1)}'`);
    const { content } = await world.report();
    expect(content.headline).toBe('balanced');
    expect(content.as_of).toBe(isoText(END));
    for (const part of ['trial_balance', 'roll_forward', 'movements', 'fees'] as const)
      expect([part, content[part]]).toEqual([part, first[part]]);
    expect(content.wallets).toEqual(first.wallets);
  });

  it('has a drift that began in it, also if that of the payer may have begun later', async () => {
    const payer = await world.drift(addr(5), -5n, { window_from: isoText(END) });
    const windows = { window_from: isoText(END - HOUR), window_to: isoText(END + HOUR) };
    const payee = await world.drift(addr(6), 5n, { ...windows, counterpart: payer });
    await world.sql(`update tallyhook.drifts set counterpart = '${payee}' where id = '${payer}'`);
    const { breaks } = (await world.report()).content;
    expect(breaks.listed).toMatchObject([{ kind: 'drift_open', subject: payee, amount: '5' }]);
    const next = (await world.report(START, END + DAY)).content.breaks;
    expect(next.listed).toMatchObject([{ kind: 'drift_open', subject: payer, amount: '-5' }]);
  });

  it('leaves out what began after it: writes, postings that are due, drifts', async () => {
    const later = { ...timesAt(END + HOUR), amount: 9 };
    await world.operation({ ...later, state: 'unknown', answered_at: null, effective_at: null });
    await world.operation({ ...later, quarantine_reason: 'kept back', to_addr: addr(7) });
    await world.drift(addr(6), 5n, { window_from: isoText(END) });
    const { content } = await world.report();
    expect([content.breaks.listed, content.open_items.listed]).toEqual([[], []]);
    expect(content.wallets.drift.up.count).toBe(0);
    await world.drift(addr(6), 5n, { window_from: isoText(END - 1) });
    expect((await world.report()).content.breaks.by_kind).toEqual([
      { kind: 'drift_open', count: 1 },
    ]);
  });

  it('counts ages up to its end, but what is overdue by its cut-off is a break', async () => {
    const lost = { state: 'unknown', answered_at: null, effective_at: null, amount: 9 };
    const last = isoText(END - 1_000);
    await world.operation({ ...timesAt(END - 1_000), ...lost, send_deadline_at: last });
    expect((await world.report()).content.open_items.by_kind).toEqual([
      { kind: 'write_in_flight', count: 1 },
    ]);
    await world.operation({ ...timesAt(END + DAY), to_addr: addr(8) });
    await world.post();
    const { content } = await world.report();
    expect(content.breaks.listed).toMatchObject([{ kind: 'outcome_unknown', age_s: 1 }]);
  });

  it('is not provisional', async () => {
    const report = await world.report();
    expect(report).toMatchObject({ provisional: false, content: { provisional: false } });
    expect(renderHtml(report)).not.toContain('Provisional');
    expect(renderCsv(report, NO_LINES)).toContain('report,state,final,');
  });
});

it('A report of a period that still runs says provisional in every format', async () => {
  world.clock.set(END - 1);
  const report = await world.report();
  expect(report.content.as_of).toBe(isoText(END - 1));
  expect(renderHtml(report)).toContain('<strong>Provisional</strong>: the period runs until');
  expect(renderCsv(report, NO_LINES)).toContain('report,state,provisional,');
  expect(JSON.parse(renderJson(report))).toMatchObject({ provisional: true });
  world.clock.set(END);
  expect(await world.report()).toMatchObject({ provisional: false });
});
