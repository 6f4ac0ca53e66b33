/**
 * A report as CSV (RFC 4180): one table with one line per figure, finding or account, or a file per
 * section. Numbers are exact, although spreadsheets round beyond 15 digits.
 */
import { strToU8, zipSync } from 'fflate';
import { csvRow } from '../../kernel/csv.ts';
import { cellText } from '../../resources/cells.ts';
import { type Report, reportLine, reportWithContent } from '../../resources/reports/report.ts';
import { COLUMNS, type Section, sectionsOf } from '../../resources/reports/sections.ts';
import { shower } from '../../resources/show.ts';
import type { ReportLines } from '../queries/lines.ts';

export const showReport = shower(reportWithContent);
const showLine = shower(reportLine);

/** @param time how sentences show an instant */
export function tablesOf(
  report: Report,
  { listed, total }: ReportLines,
  time?: (iso: string) => string,
): Section[] {
  return sectionsOf(showReport(report), { listed: listed.map(showLine), total }, time);
}

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
