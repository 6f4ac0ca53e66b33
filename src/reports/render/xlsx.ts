/**
 * A report as a workbook: the lines of the CSV, a sheet per section, with the columns that it uses.
 * A spreadsheet rounds numbers beyond 15 digits, so longer ones are text. Instants are shown in the
 * time zone of the report.
 */
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import type { ReportLines } from '../queries/lines.ts';
import type { Report } from '../store.ts';
import { type Line, sectionsOf } from './csv.ts';
import { localText, withLocal } from './local-time.ts';

const DIGITS_MAX = 15;
const BOLD = { fontWeight: 'bold' } as const;

export function renderXlsx(report: Report, lines: ReportLines): Promise<Buffer> {
  const zone = report.content.time_zone;
  const sections = sectionsOf(report, lines, (iso) => localText(iso, zone));
  return writeWorkbook(sections.map((part) => sheetOf(part, zone))).toBuffer();
}

function sheetOf(
  { section, columns, lines: given }: ReturnType<typeof sectionsOf>[number],
  zone: string,
) {
  const lines = given.map((line) => withLocalTimes(line, zone));
  const data: SheetData = [
    columns.map((column) => {
      const value = column === 'since' ? `since (${zone})` : column;
      return { value, type: String, ...BOLD };
    }),
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

/** Instants of the columns that have any; the details of a report's head are not an app's text. */
function withLocalTimes(line: Line, zone: string): Line {
  const shown = (text: Line[keyof Line]) =>
    typeof text === 'string' ? withLocal(text, zone) : text;
  const { since, detail } = line;
  return {
    ...line,
    ...(since == null ? {} : { since: shown(since) }),
    ...(line.section === 'report' ? { detail: shown(detail) } : {}),
  };
}

function cellOf(value: Line[keyof Line]) {
  if (value == null) return null;
  const text = String(value);
  const isNumber = /^-?\d+$/.test(text) && text.replace('-', '').length <= DIGITS_MAX;
  return isNumber ? { value: Number(text), type: Number } : { value: text, type: String };
}
