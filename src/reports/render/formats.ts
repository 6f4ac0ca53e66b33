/** The formats of a report by name, as the API, the CLI and the delivery use them. */
import type { LinesNeeded, ReportLines } from '../queries/lines.ts';
import type { Report } from '../store.ts';
import { renderCsv } from './csv.ts';
import { renderCsvZip } from './csv-zip.ts';
import { renderHtml } from './html.ts';
import { renderJournal } from './journal.ts';
import { renderJson } from './json.ts';
import { renderXlsx } from './xlsx.ts';

export const REPORT_FORMATS = ['json', 'csv', 'csv-zip', 'xlsx', 'html', 'hledger'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

interface Format {
  mediaType: string;
  /** Of a file name. */
  extension: string;
  isText: boolean;
  lines: LinesNeeded;
  render(
    report: Report,
    lines: ReportLines,
    shown: { consoleUrl?: string | undefined },
  ): string | Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
}

export const FORMATS: Readonly<Record<ReportFormat, Format>> = {
  json: {
    mediaType: 'application/json',
    extension: 'json',
    isText: true,
    lines: 'none',
    render: renderJson,
  },
  csv: {
    mediaType: 'text/csv',
    extension: 'csv',
    isText: true,
    lines: 'some',
    render: renderCsv,
  },
  'csv-zip': {
    mediaType: 'application/zip',
    extension: 'zip',
    isText: false,
    lines: 'some',
    render: renderCsvZip,
  },
  xlsx: {
    mediaType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    extension: 'xlsx',
    isText: false,
    lines: 'some',
    render: async (report, lines) => new Uint8Array(await renderXlsx(report, lines)),
  },
  html: {
    mediaType: 'text/html',
    extension: 'html',
    isText: true,
    lines: 'none',
    render: (report, _, { consoleUrl }) => renderHtml(report, consoleUrl),
  },
  hledger: {
    mediaType: 'text/plain',
    extension: 'journal',
    isText: true,
    lines: 'all',
    render: renderJournal,
  },
};
