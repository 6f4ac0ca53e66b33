/** A report as a ZIP archive with one CSV per section, which has the columns that it uses. */
import { strToU8, zipSync } from 'fflate';
import type { ReportLines } from '../queries/lines.ts';
import type { Report } from '../store.ts';
import { csvText, sectionsOf } from './csv.ts';

/** Equal reports give equal bytes. */
export function renderCsvZip(report: Report, given: ReportLines): Uint8Array<ArrayBuffer> {
  const files = sectionsOf(report, given).map(({ section, columns, lines }, index) => {
    const place = String(index + 1).padStart(2, '0');
    return [`${place}-${section.replaceAll(' ', '-')}.csv`, strToU8(csvText(columns, lines))];
  });
  // A ZIP has times without a zone; this is the one that the archive was made in, in UTC.
  const made = new Date(report.createdAt).toISOString().slice(0, 19);
  return zipSync(Object.fromEntries(files), { mtime: made });
}
