/** The formats of a report: JSON with its hash, safe CSV, a workbook, self-contained HTML. */
import { unzipSync } from 'fflate';
import { beforeAll, describe, expect, it } from 'vitest';
import { canonicalJson, parseJson, sha256Hex } from '../../src/kernel/json.ts';
import { NO_LINES } from '../../src/reports/queries/lines.ts';
import {
  renderCsv,
  renderCsvZip,
  renderJson,
  renderXlsx,
} from '../../src/reports/render/formats.ts';
import { renderHtml } from '../../src/reports/render/html.ts';
import { csvCell } from '../../src/resources/cells.ts';
import type { Report } from '../../src/resources/reports/content.ts';
import { addr, balancedWorld, HUGE, useWorld } from './world.ts';

const world = await useWorld(balancedWorld());
let report: Report;
beforeAll(async () => {
  await world.operation({ reason_type: '=cmd|"/c calc"!A1', to_addr: addr(3), amount: 1 });
  await world.operation({
    reason_type: '<script>alert(1)</script>, "x"\n',
    to_addr: addr(3),
    amount: 2,
  });
  await world.post();
  await world.drift(addr(1), -5n, { assignee: '@ann' });
  await world.sql(`update tallyhook.wallets set observed_balance = 145, verdict = 'drifting'
    where addr = '${addr(1)}'`);
  const { id } = await world.report();
  report = await world.reports.getReport(id);
});

/** RFC 4180, read back. */
function readCsv(file: string): string[][] {
  const text = file.replace(/^\ufeff/, '');
  const cells = [...text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)];
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of cells) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}

it('The hash in the JSON is that of its content', () => {
  const read = parseJson(renderJson(report)) as { hash: string; content: unknown };
  expect(sha256Hex(canonicalJson(read.content))).toBe(read.hash);
  expect(renderJson(report)).toContain(`"${HUGE + 60n}"`);
});

describe('XLSX', () => {
  const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
  const unescaped = (xml: string) =>
    xml.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"');

  it('The workbook has a sheet per section, and every text and every figure of the CSV', async () => {
    const files = unzipSync(await renderXlsx(report, NO_LINES));
    const [head = [], ...rows] = readCsv(renderCsv(report, NO_LINES));
    const days = (iso: string) => Math.floor(Date.parse(iso) / 1000) / 86_400 + 25_569;
    const shown = (cell: string) =>
      /^\d{4}-\d\d-\d\dT\S+Z$/.test(cell)
        ? `<v>${days(cell)}</v>`
        : cell.replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z/g, '$1 $2');
    const sections = [...new Set(rows.map(([section]) => section))];
    const named = [...text(files['xl/workbook.xml']).matchAll(/<sheet [^>]*name="([^"]*)"/g)];
    expect(named.map(([, name]) => name)).toEqual(sections);
    const cells = Object.entries(files).flatMap(([name, bytes]) =>
      /sheet\d+\.xml$|sharedStrings/.test(name) ? [unescaped(text(bytes))] : [],
    );
    const all = cells.join('');
    for (const row of rows)
      for (const [i, cell] of row.entries())
        if (i > 0 && head[i] !== 'evidence' && !cell.includes("'") && !cell.includes('&'))
          expect(all).toContain(shown(cell).split('\n')[0]);
  });

  it('A number of more than 15 digits is text, so that no digit is lost', async () => {
    const files = unzipSync(await renderXlsx(report, NO_LINES));
    const strings = text(files['xl/sharedStrings.xml']);
    expect(strings).toContain(`${HUGE + 60n}`);
    const numbers = Object.entries(files).flatMap(([name, bytes]) =>
      /sheet\d+\.xml$/.test(name) ? [...text(bytes).matchAll(/<v>(-?\d+)<\/v>/g)] : [],
    );
    expect(numbers.length).toBeGreaterThan(10);
    for (const [, digits = ''] of numbers) expect(digits.replace('-', '').length).toBeLessThan(16);
  });
});

describe('CSV', () => {
  it('Every CSV line has the same columns, and every figure is exact', () => {
    const [head = [], ...rows] = readCsv(renderCsv(report, NO_LINES));
    expect(new Set(rows.map((row) => row.length))).toEqual(new Set([head.length]));
    const at = (row: string[], column: string) => row[head.indexOf(column)];
    const drift = rows.find((row) => at(row, 'section') === 'break');
    expect(drift && at(drift, 'item')).toBe('drift_open');
    expect(drift && at(drift, 'amount')).toBe('-5');
    const observed = rows.find((row) => at(row, 'item') === 'observed');
    expect(observed && at(observed, 'amount')).toBe(`${HUGE + 60n}`);
  });

  it.each([
    ['=1', "'=1"],
    ['  +1', `"  '+1"`],
    ['-5', "'-5"],
    ['-0', "'-0"],
    ['007', '"007"'],
    ['1E5', '"1E5"'],
    [' 12', '" 12"'],
    ['12 ', '"12 "'],
    ['-5-1', "'-5-1"],
    ['a;=cmd()', `"a;'=cmd()"`],
    ['a; "=cmd()', `"a; ""'=cmd()"`],
    ['a\t@x', `"a\t'@x"`],
    ['a\n-x', `"a\n'-x"`],
    ['a|=x', `"a|'=x"`],
    ['\uff1dx', "'\uff1dx"],
    ['{"a":[1,-2]}', '"{""a"":[1,-2]}"'],
    ['a-b=c', 'a-b=c'],
  ])('CSV writes %j as %j, of which no part runs as a formula', (text, cell) => {
    expect(csvCell({ kind: 'text', value: text })).toBe(cell);
  });

  it('A number in CSV is as it is, with every sign', () => {
    expect(csvCell({ kind: 'amount', value: '-5' })).toBe('-5');
    expect(csvCell({ kind: 'count', value: -5 })).toBe('-5');
  });

  it('CSV begins with the mark of UTF-8, unless it is not wanted', () => {
    const files = (bom?: boolean) => [
      renderCsv(report, NO_LINES, { bom }),
      ...Object.values(unzipSync(renderCsvZip(report, NO_LINES, { bom }))).map((bytes) =>
        Buffer.from(bytes).toString(),
      ),
    ];
    expect(files().filter((file) => !file.startsWith('\ufeff'))).toEqual([]);
    expect(files(false).filter((file) => /^\ufeff/.test(file))).toEqual([]);
    expect(files().map((file) => file.slice(1))).toEqual(files(false));
  });

  it('CSV escapes formulas and quotes, and leaves negative numbers unchanged', () => {
    const text = renderCsv(report, NO_LINES);
    expect(text).toContain(`"'=cmd|""/c calc""!A1"`);
    expect(text).toContain('"<script>alert(1)</script>, ""x""\n"');
    expect(text).toContain(",'@ann,");
    const cells = readCsv(text).flat();
    expect(cells.filter((cell) => /^[=+@\t\r]|^-(?!\d+$)/.test(cell))).toEqual([]);
  });
});

describe('CSV in a ZIP archive', () => {
  it('There is a CSV per section, in order, with every cell of the single CSV', () => {
    const files = Object.entries(unzipSync(renderCsvZip(report, NO_LINES)));
    const [head = [], ...rows] = readCsv(renderCsv(report, NO_LINES));
    const sections = [...new Set(rows.map(([section]) => section))];
    const nameOf = (section = '', index = 0) =>
      `${String(index + 1).padStart(2, '0')}-${section.replaceAll(' ', '-')}.csv`;
    expect(files.map(([name]) => name)).toEqual(sections.map(nameOf));
    for (const [index, [, bytes]] of files.entries()) {
      const [columns = [], ...lines] = readCsv(Buffer.from(bytes).toString());
      const whole = rows.filter(([section]) => section === sections[index]);
      expect(lines).toEqual(
        whole.map((row) => columns.map((column) => row[head.indexOf(column)] ?? '')),
      );
      const left = head.filter((column) => column !== 'section' && !columns.includes(column));
      for (const column of left)
        expect(whole.map((row) => row[head.indexOf(column)])).toEqual(whole.map(() => ''));
    }
  });

  it('The same report gives the same bytes', () => {
    expect(renderCsvZip(report, NO_LINES)).toEqual(renderCsvZip({ ...report }, NO_LINES));
  });
});

describe('HTML', () => {
  it('HTML escapes user input and needs no script and no other file', () => {
    const page = renderHtml(report);
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).not.toMatch(/<script|<link|<img|<iframe|src=|href=|url\(|@import|\son\w+=/i);
  });

  it('HTML is printed on A4, with table heads on every page and no row on two', () => {
    const page = renderHtml(report);
    expect(page).toContain('@page { size: A4; margin:');
    expect(page).toContain('thead { display: table-header-group; }');
    expect(page).toMatch(/\btr, \.sign \{ break-inside: avoid; \}/);
  });

  it('HTML begins with the verdict and ends with the hash', () => {
    const page = renderHtml(report);
    const at = ['1 break', 'Breaks', 'Movements', 'Roll-forward', 'Coverage', report.hash];
    const places = at.map((text) => page.indexOf(text));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
  });

  it('HTML groups amounts without losing a digit', () => {
    const digits = `${HUGE + 60n}`;
    expect(renderHtml(report).replaceAll(/\u202f|<wbr>/g, '')).toContain(digits);
  });
});
