/**
 * A report as a workbook: the lines of the CSV, a sheet per section, with the columns that it uses.
 * A spreadsheet rounds numbers beyond 15 digits, so longer ones are text. Instants are shown in the
 * time zone of the report.
 */
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import { cellText } from '../../resources/cells.ts';
import type { Report } from '../../resources/reports/report.ts';
import type { Cell, Section } from '../../resources/reports/sections.ts';
import type { ReportLines } from '../queries/lines.ts';
import { tablesOf } from './csv.ts';
import { localText } from './local-time.ts';

const DIGITS_MAX = 15;
const NUMBERS: readonly Cell['kind'][] = ['amount', 'count', 'number'];

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
