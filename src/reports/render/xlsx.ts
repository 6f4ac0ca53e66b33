/**
 * A report as a workbook: the lines of the CSV, a sheet per section, with the columns that it uses.
 * A spreadsheet rounds numbers beyond 15 digits, so longer ones are text.
 */
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import type { Report } from '../store.ts';
import { COLUMNS, type Line, linesOf } from './csv.ts';

const DIGITS_MAX = 15;
const BOLD = { fontWeight: 'bold' } as const;

export function renderXlsx(report: Report): Promise<Buffer> {
  const sections = Map.groupBy(linesOf(report), ({ section }) => String(section));
  const sheets = [...sections].map(([section, lines]) => sheetOf(section, lines));
  return writeWorkbook(sheets).toBuffer();
}

function sheetOf(section: string, lines: readonly Line[]) {
  const columns = COLUMNS.filter(
    (column) => column !== 'section' && lines.some((line) => line[column] != null),
  );
  const data: SheetData = [
    columns.map((value) => ({ value, type: String, ...BOLD })),
    ...lines.map((line) => columns.map((column) => cellOf(line[column]))),
  ];
  const widthOf = (column: (typeof COLUMNS)[number]) => ({
    width: Math.min(
      60,
      Math.max(12, ...lines.map((line) => String(line[column] ?? '').length + 2)),
    ),
  });
  return { sheet: section, data, columns: columns.map(widthOf), stickyRowsCount: 1 };
}

function cellOf(value: Line[keyof Line]) {
  if (value == null) return null;
  const text = String(value);
  const isNumber = /^-?\d+$/.test(text) && text.replace('-', '').length <= DIGITS_MAX;
  return isNumber ? { value: Number(text), type: Number } : { value: text, type: String };
}
