/**
 * A report as a workbook: the lines of the CSV, a sheet per section, with the columns that it uses.
 * A spreadsheet rounds numbers beyond 15 digits, so longer ones are text.
 */
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import type { Report } from '../store.ts';
import { type Line, sectionsOf } from './csv.ts';

const DIGITS_MAX = 15;
const BOLD = { fontWeight: 'bold' } as const;

export function renderXlsx(report: Report): Promise<Buffer> {
  return writeWorkbook(sectionsOf(report).map(sheetOf)).toBuffer();
}

function sheetOf({ section, columns, lines }: ReturnType<typeof sectionsOf>[number]) {
  const data: SheetData = [
    columns.map((value) => ({ value, type: String, ...BOLD })),
    ...lines.map((line) => columns.map((column) => cellOf(line[column]))),
  ];
  const widthOf = (column: keyof Line) => ({
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
