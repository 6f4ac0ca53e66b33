/**
 * How each format of a report is rendered: JSON and the tables here, the page for print in
 * `html.ts`, the journal of hledger in `journal.ts`.
 */
import { strToU8, zipSync } from 'fflate';
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import { csvRow } from '../../kernel/csv.ts';
import { canonicalJson } from '../../kernel/json.ts';
import {
  type Report,
  type ReportFormat,
  reportLine,
  reportWithContent,
} from '../../resources/reports/report.ts';
import { type Cell, COLUMNS, type Section, sectionsOf } from '../../resources/reports/sections.ts';
import { cellText } from '../../resources/resource.ts';
import { shower } from '../../resources/show.ts';
import type { LinesNeeded, ReportLines } from '../queries/lines.ts';
import { renderHtml } from './html.ts';
import { renderJournal } from './journal.ts';
import { localText } from './local-time.ts';

interface Renderer {
  lines: LinesNeeded;
  render(
    report: Report,
    lines: ReportLines,
    shown: { consoleUrl?: string | undefined },
  ): string | Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
}

export const RENDERERS: Readonly<Record<ReportFormat, Renderer>> = {
  json: { lines: 'none', render: renderJson },
  csv: { lines: 'some', render: renderCsv },
  'csv-zip': { lines: 'some', render: renderCsvZip },
  xlsx: {
    lines: 'some',
    render: async (report, lines) => new Uint8Array(await renderXlsx(report, lines)),
  },
  html: { lines: 'none', render: (report, _, { consoleUrl }) => renderHtml(report, consoleUrl) },
  hledger: { lines: 'all', render: renderJournal },
};

/** Canonical JSON; its `hash` is that of the canonical JSON of `content`. */
export function renderJson(report: Report): string {
  return `${canonicalJson(showReport(report))}\n`;
}

const showReport = shower(reportWithContent);
const showLine = shower(reportLine);

/** What CSV and workbooks have. @param time how sentences show an instant */
function tablesOf(
  report: Report,
  { listed, total }: ReportLines,
  time?: (iso: string) => string,
): Section[] {
  return sectionsOf(showReport(report), { listed: listed.map(showLine), total }, time);
}

/**
 * RFC 4180: one table with one line per figure, finding or account. Numbers are exact, although
 * spreadsheets round beyond 15 digits.
 */
export function renderCsv(report: Report, lines: ReportLines): string {
  const sections = tablesOf(report, lines);
  const rows = sections.flatMap(({ name, lines }) =>
    rowsOf(COLUMNS, lines).map((cells) => [name, ...cells]),
  );
  return [['section', ...COLUMNS], ...rows].map(csvRow).join('');
}

/** A ZIP archive with one CSV per section; equal reports give equal bytes. */
export function renderCsvZip(report: Report, given: ReportLines): Uint8Array<ArrayBuffer> {
  const files = tablesOf(report, given).map(({ name, columns, lines }, index) => {
    const place = String(index + 1).padStart(2, '0');
    const text = [columns, ...rowsOf(columns, lines)].map(csvRow).join('');
    return [`${place}-${name.replaceAll(' ', '-')}.csv`, strToU8(text)];
  });
  // A ZIP has times without a zone; this is the one that the archive was made in, in UTC.
  const made = new Date(report.createdAt).toISOString().slice(0, 19);
  return zipSync(Object.fromEntries(files), { mtime: made });
}

function rowsOf(columns: readonly string[], lines: Section['lines']): string[][] {
  return lines.map((line) => columns.map((column) => cellText(line[column]?.value)));
}

/** A spreadsheet rounds longer numbers, so these are text. */
const DIGITS_MAX = 15;
const NUMBERS: readonly Cell['kind'][] = ['amount', 'count', 'number'];

/** The sections of the CSV as a workbook. Instants are shown in the time zone of the report. */
export function renderXlsx(report: Report, lines: ReportLines): Promise<Buffer> {
  const zone = report.content.time_zone;
  const sections = tablesOf(report, lines, (iso) => localText(iso, zone));
  return workbookOf(sections, zone);
}

/** A sheet for each section. */
export function workbookOf(sections: readonly Section[], zone: string): Promise<Buffer> {
  return writeWorkbook(sections.map((section) => sheetOf(section, zone))).toBuffer();
}

function sheetOf({ name, columns, lines }: Section, zone: string) {
  const cells = columns.map((column) => lines.map((line) => cellOf(line[column], zone)));
  const heads = columns.map((column) => {
    const isTime = lines.every((line) => (line[column]?.kind ?? 'instant') === 'instant');
    const value = isTime ? `${column} (${zone})` : column;
    return { value, type: String, fontWeight: 'bold' } as const;
  });
  const data: SheetData = [heads, ...lines.map((_, i) => cells.map((column) => column[i] ?? null))];
  const widths = cells.map((column) => {
    const lengths = column.map((cell) => String(cell?.value ?? '').length + 2);
    return { width: Math.min(60, Math.max(12, ...lengths)) };
  });
  return { sheet: name, data, columns: widths, stickyRowsCount: 1 };
}

function cellOf(cell: Cell | undefined, zone: string) {
  if (!cell) return null;
  const text = cellText(cell.value);
  if (cell.kind === 'instant') return { value: localText(text, zone), type: String };
  const isNumber = NUMBERS.includes(cell.kind) && text.replace('-', '').length <= DIGITS_MAX;
  return isNumber ? { value: Number(text), type: Number } : { value: text, type: String };
}
