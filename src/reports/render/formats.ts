/**
 * How each format of a report is rendered: JSON and CSV here, the workbook in `workbook.ts`, the
 * page for print in `html.ts`, the journal of hledger in `journal.ts`.
 */
import { strToU8, zipSync } from 'fflate';
import type { Tx } from '../../db/connect.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { type Cell, csvHead, csvRow } from '../../resources/cells.ts';
import { localText } from '../../resources/local-time.ts';
import { type Report, reportWithContent } from '../../resources/reports/content.ts';
import { type ReportFormat, reportLine } from '../../resources/reports/report.ts';
import { COLUMNS, type Section, sectionsOf } from '../../resources/reports/sections.ts';
import { shower } from '../../resources/show.ts';
import { type ClosedPeriod, findPeriodOf } from '../periods/store.ts';
import {
  type LineLimits,
  type LinesNeeded,
  type ReportLines,
  readLines,
} from '../queries/lines.ts';
import { renderHtml } from './html.ts';
import { renderJournal } from './journal.ts';
import { ABOUT_FIGURES, workbookOf } from './workbook.ts';

/** How a report is shown, beside its content. */
export interface ShownAs {
  /** The close whose report it is. */
  closed?: ClosedPeriod | undefined;
  consoleUrl?: string | undefined;
  /** Whether CSV begins with the mark of UTF-8; by default it does. */
  bom?: boolean | undefined;
}

interface Renderer {
  lines: LinesNeeded;
  /** It shows the close whose report it is. */
  showsClose?: true;
  render(
    report: Report,
    lines: ReportLines,
    shown: ShownAs,
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
  html: {
    lines: 'none',
    showsClose: true,
    render: (report, _, shown) => renderHtml(report, shown),
  },
  hledger: { lines: 'all', render: renderJournal },
};

/** What rendering needs beside the report: its lines, and the close whose report it is. */
export async function readForRendering(
  tx: Tx,
  report: Report,
  format: ReportFormat,
  limits: LineLimits,
): Promise<{ lines: ReportLines; closed: ClosedPeriod | undefined }> {
  const { lines, showsClose } = RENDERERS[format];
  return {
    lines: await readLines(tx, report, lines, limits),
    closed: showsClose && (await findPeriodOf(tx, report.id)),
  };
}

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

/** One table with one line per figure, finding, account or transaction. Numbers are exact. */
export function renderCsv(
  report: Report,
  lines: ReportLines,
  { bom = true }: ShownAs = {},
): string {
  const rows = tablesOf(report, lines).flatMap(({ name, lines }) =>
    lines.map((line) => {
      return csvRow([text(name), ...COLUMNS.map((column) => line[column])]);
    }),
  );
  return [csvHead(['section', ...COLUMNS], bom), ...rows].join('');
}

/** A ZIP archive with one CSV per section; equal reports give equal bytes. */
export function renderCsvZip(
  report: Report,
  given: ReportLines,
  { bom = true }: ShownAs = {},
): Uint8Array<ArrayBuffer> {
  const files = tablesOf(report, given).map(({ name, columns, lines }, index) => {
    const place = String(index + 1).padStart(2, '0');
    const rows = lines.map((line) => csvRow(columns.map((column) => line[column])));
    const text = [csvHead(columns, bom), ...rows].join('');
    return [`${place}-${name.replaceAll(' ', '-')}.csv`, strToU8(text)];
  });
  // A ZIP has times without a zone; this is the one that the archive was made in, in UTC.
  const made = new Date(report.createdAt).toISOString().slice(0, 19);
  return zipSync(Object.fromEntries(files), { mtime: made });
}

/** The sections of the CSV as a workbook. Instants are shown in the time zone of the report. */
export function renderXlsx(report: Report, lines: ReportLines): Promise<Buffer> {
  const zone = report.content.time_zone;
  const [head, ...sections] = tablesOf(report, lines, (iso) => localText(iso, zone));
  const about = { item: text('figures'), detail: text(ABOUT_FIGURES) };
  return workbookOf(head ? [{ ...head, lines: [...head.lines, about] }, ...sections] : [], zone);
}

function text(value: string): Cell {
  return { kind: 'text', value };
}
