/** A section that is cut says how many rows it leaves out, in every format of a report. */
import { unzipSync } from 'fflate';
import { beforeAll, expect, it } from 'vitest';
import type { ReportLines } from '../../src/reports/queries/lines.ts';
import { RENDERERS } from '../../src/reports/render/formats.ts';
import { renderJournal } from '../../src/reports/render/journal.ts';
import type { Report } from '../../src/resources/reports/content.ts';
import type { ReportFormat } from '../../src/resources/reports/report.ts';
import { addr, balancedWorld, useWorld } from './world.ts';

const CUT = [
  'movements',
  'movements before',
  'break',
  'open item',
  'own account',
  'prior period',
  'in transit',
  'token supply',
  'lines',
];
const LEFT_OUT = 3;
const AT = '2026-01-01T00:00:00.000Z';

const world = await useWorld(balancedWorld());
let report: Report;
let lines: ReportLines;

/** As if each list had more rows than it may have; lists without a row get one. */
beforeAll(async () => {
  await world.drift(addr(1), -5n);
  const made = await world.report();
  const { content } = made;
  const { movements, own_accounts: own, wallets, tokens, breaks } = content;
  const cut = <Row>(rows: readonly Row[]) => {
    const listed = rows.slice(0, 1);
    return { listed, total: listed.length + LEFT_OUT };
  };
  const prior = {
    transaction: '1',
    account: `wallet:${addr(1)}`,
    amount: '-5',
    kind: 'give',
    reason_type: null,
    operation_id: null,
    effective_at: AT,
    recorded_at: AT,
  };
  const counts = { opening: 0, minted: 1, burned: 0, found: 0, missing: 0, surplus: 0, held: 1 };
  const inTransit = { addr: addr(1), amount: '5', operations: ['op_1'] };
  const open = breaks.listed.map((one) => ({ ...one, kind: 'write_in_flight' as const }));
  report = {
    ...made,
    content: {
      ...content,
      breaks: { ...breaks, ...cut(breaks.listed) },
      open_items: { ...content.open_items, ...cut(open) },
      movements: { ...movements, ...cut(movements.listed) },
      own_accounts: cut(own.listed),
      prior_period: { closed_until: AT, known_at: AT, ...cut([prior]) },
      wallets: { ...wallets, in_transit: cut([inTransit]) },
      tokens: { ...tokens, supply: cut([{ contract_id: '5', ...counts }]) },
    },
  };
  const page = await world.reports.listLines(made.id, {}, { limit: 1 });
  const days = { first: '2026-01-01', last: '2026-01-02', of: ['2026-01-01'] };
  lines = { ...cut(page), openings: [], days };
});

const rendered = async (format: ReportFormat) =>
  RENDERERS[format].render(report, lines, { bom: false });
const archive = async (format: ReportFormat) =>
  Object.entries(unzipSync((await rendered(format)) as Uint8Array)).map(
    ([name, bytes]) => [name, Buffer.from(bytes).toString()] as const,
  );

it('Every cut section of the CSV ends with how many rows it leaves out, and no number', async () => {
  const rows = String(await rendered('csv')).split('\r\n');
  const said = rows.filter((row) => row.includes('not listed here'));
  expect(said.map((row) => row.split(',not')[0])).toEqual(CUT);
  for (const row of said) {
    const [section] = row.split(',');
    expect(rows.findLast((one) => one.startsWith(`${section},`))).toBe(row);
    expect(row).toMatch(/^[a-z -]+,not listed here,"3 of 4 rows",+(npx [^,]+)?,*$/);
  }
});

it('Each CSV of the archive ends with it as well', async () => {
  const files = (await archive('csv-zip')).filter(([, text]) => text.includes('not listed here'));
  expect(files.map(([name]) => name.replace(/^\d+-|\.csv$/g, '').replaceAll('-', ' '))).toEqual(
    CUT.map((name) => name.replaceAll('-', ' ')),
  );
  for (const [, text] of files)
    expect(text.trimEnd().split('\r\n').at(-1)).toMatch(/^not listed here,"3 of 4 rows"/);
});

it('Each sheet of the workbook ends with it, and has no total', async () => {
  const files = new Map(await archive('xlsx'));
  const names = [...(files.get('xl/workbook.xml') ?? '').matchAll(/<sheet [^>]*name="([^"]*)"/g)];
  const strings = [...(files.get('xl/sharedStrings.xml') ?? '').matchAll(/<t[^>]*>([^<]*)<\/t>/g)];
  const texts = strings.map(([, text]) => text);
  const ends = names.flatMap(([, name], index) => {
    const sheet = files.get(`xl/worksheets/sheet${index + 1}.xml`) ?? '';
    const last = [...sheet.matchAll(/<row [^>]*>(.*?)<\/row>/gs)].at(-1)?.[1] ?? '';
    const cells = [...last.matchAll(/t="s"[^>]*><v>(\d+)<\/v>/g)].map(
      ([, at]) => texts[Number(at)],
    );
    return cells[0] === 'not listed here' ? [[name, cells[1]]] : [];
  });
  expect(ends).toEqual(CUT.map((name) => [name, '3 of 4 rows']));
});

it('The printed report says it below each table that is cut', async () => {
  const said = String(await rendered('html')).split('Not listed here: 3 of 4 rows.');
  const heads = ['Breaks', 'Open items', 'Movements', 'Operators, fees and collection'];
  const later = ['Prior-period lines', 'Open operations already included', 'Tokens'];
  expect(
    said.slice(0, -1).map((part) =>
      part
        .match(/<h[23]>[^<]*/g)
        ?.at(-1)
        ?.slice(4),
    ),
  ).toEqual([...heads, ...later]);
});

it('The journal says of how many own accounts it asserts no balance', () => {
  expect(renderJournal(report, lines)).toContain('\n; own accounts not listed here: 3 of 4 rows\n');
});

it('A report with all of its rows says nothing of it, in any format', async () => {
  const { id } = await world.report();
  for (const format of ['csv', 'html', 'hledger'] as const)
    expect(String(await world.reports.renderReport(id, format))).not.toMatch(/not listed here/i);
});
