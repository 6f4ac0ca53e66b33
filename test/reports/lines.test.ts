/** The lines behind the totals of a report: they sum to it, and they stay as they were. */

import { beforeAll, expect, it } from 'vitest';
import type { LinePosition } from '../../src/reports/reports.ts';
import { type Report, reportWithContent } from '../../src/resources/reports/content.ts';
import { type ReportLine, reportLine } from '../../src/resources/reports/report.ts';
import { sectionsOf } from '../../src/resources/reports/sections.ts';
import { shower } from '../../src/resources/show.ts';
import { useFolder } from '../harness/folder.ts';
import { addr, balancedWorld, HUGE, START, useWorld } from './world.ts';

const NEWEST = { wallet: addr(5), amount: 7_000n };
const world = await useWorld(balancedWorld({ settings: { linesMax: 4 } }));
const folder = useFolder();
let report: Report;
let before: ReportLine[];

/** A second give of the same reason, and a transfer that is reversed. */
beforeAll(async () => {
  await world.operation({ reason_type: 'welcome', amount: 5 });
  const reversed = await world.operation({
    kind: 'transfer',
    from_addr: addr(2),
    to_addr: addr(1),
    operation_no: null,
    amount: 9,
    fee_amount: 1,
    reason_type: null,
  });
  await world.post();
  await world.sql(
    `update tallyhook.operations set state = 'not_executed' where id = '${reversed}'`,
  );
  await world.post();
  await world.open(addr(4), 77n, START + 2);
  await world.post();
  report = await world.report();
  before = await allLines();
});

async function allLines(filter = {}, limit = 2): Promise<ReportLine[]> {
  const found: ReportLine[] = [];
  for (let after: LinePosition | undefined; ; ) {
    const page = await world.reports.listLines(report.id, filter, { after, limit });
    const last = page.at(-1);
    if (!last) return found;
    found.push(...page);
    after = { at: last.effectiveAt, transaction: last.transactionId };
  }
}

const sum = (values: bigint[]) => values.reduce((total, value) => total + value, 0n);

it('The lines of each kind and reason sum to the movements of the report', async () => {
  const { listed } = report.content.movements;
  expect(listed.map(({ kind, reason_type: reason }) => [kind, reason])).toEqual([
    ['give', 'welcome'],
    ['receive_from', 'shop'],
    ['transfer', null],
  ]);
  for (const { kind, reason_type: reasonType, operations, amount, fees } of listed) {
    const lines = await allLines({ kind, reasonType });
    expect(lines.reduce((count, line) => count + line.operations, 0)).toBe(operations);
    expect(`${sum(lines.map((line) => line.amount))}`).toBe(amount);
    expect(`${sum(lines.map((line) => line.fees))}`).toBe(fees);
  }
  const reversal = before.find(({ reverses }) => reverses !== null);
  expect(reversal).toMatchObject({ kind: 'transfer', operations: -1, amount: -9n, fees: -1n });
  const opened = before.find(({ kind }) => kind === 'opening');
  expect(opened).toMatchObject({ operationId: null, operations: 0, amount: 77n, fees: 0n });
});

it('Opening balances and the entries of the lines sum to the closing of the roll-forward', () => {
  const entries = before.flatMap((line) => line.entries);
  for (const { name, opening, closing } of report.content.roll_forward) {
    const own = entries.filter(({ account }) => account.split(':')[0] === name);
    expect(`${BigInt(opening) + sum(own.map(({ amount }) => amount))}`).toBe(closing);
  }
});

it('Pages have each line once, in the order in which they took effect', async () => {
  const order = before.map(({ effectiveAt, transactionId }) => [effectiveAt, transactionId]);
  expect(new Set(before.map(({ transactionId }) => transactionId)).size).toBe(before.length);
  expect(order).toEqual(
    order.toSorted(([a, x], [b, y]) => Number(a) - Number(b) || Number(x) - Number(y)),
  );
  expect(await allLines({}, 500)).toEqual(before);
  const own = await allLines({ account: 'OPERATOR:7' });
  expect(own.map(({ kind }) => kind)).toEqual(own.map(() => 'give'));
  expect(own).toHaveLength(2);
});

it('Every spreadsheet has the lines, and says how many more there are', async () => {
  const csv = String(await world.reports.renderReport(report.id, 'csv'));
  const lines = csv.split('\r\n').filter((line) => line.startsWith('lines,'));
  expect(lines).toHaveLength(5);
  expect(lines[1]).toContain(`operator:7,wallet:${addr(1)}`);
  expect(csv).toContain(`1/${HUGE}`);
  expect(lines.at(-1)).toContain(
    `,not listed here,"${before.length - 4} of ${before.length} rows",`,
  );
  expect(lines.at(-1)).toContain(`npx tallyhook export lines ${report.id} --out lines.csv`);
});

it('A section without all of its rows has no totals, and one with all of them has', () => {
  const shown = shower(reportWithContent)(report);
  const listed = before.map(shower(reportLine));
  const sumsOf = (rows: typeof listed, total: number) =>
    sectionsOf(shown, { listed: rows, total }).find(({ name }) => name === 'lines')?.sums;
  expect(sumsOf(listed, listed.length)).toEqual(['count', 'amount', 'fees']);
  expect(sumsOf(listed.slice(1), listed.length)).toEqual([]);
});

it('A journal that would be too long is refused with what helps', async () => {
  const few = await balancedWorld({ settings: { journalMax: 3 } });
  const { id } = await few.report();
  await expect(few.reports.renderReport(id, 'hledger')).rejects.toThrow(
    /^conflict: the period has 3 transactions and 2 opening balances, of which this format/,
  );
  await few.drop();
});

it('A format that cannot be made is a problem of its file alone', async () => {
  const files = { folder, formats: ['hledger' as const, 'html' as const] };
  const few = await balancedWorld({ settings: { journalMax: 3, files } });
  const { id } = await few.report();
  const { written, failed } = await few.reports.writeFiles(few.clock.now());
  expect(written).toHaveLength(1);
  expect(failed).toMatchObject([{ problem: expect.stringContaining('choose a shorter period') }]);
  expect(await few.reports.filesOf(id)).toHaveLength(2);
  await few.drop();
});

it('The lines of a report stay as they are while late facts arrive', async () => {
  await world.open(NEWEST.wallet, NEWEST.amount, START + 1);
  await world.operation({ reason_type: 'late', to_addr: NEWEST.wallet });
  await world.post();
  expect(await allLines()).toEqual(before);
});
