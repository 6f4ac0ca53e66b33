/** The formats of a report by name, as the API, the CLI and the delivery use them. */
import type { Report } from '../store.ts';
import { renderCsv } from './csv.ts';
import { renderCsvZip } from './csv-zip.ts';
import { renderHtml } from './html.ts';
import { renderJson } from './json.ts';
import { renderXlsx } from './xlsx.ts';

export const REPORT_FORMATS = ['json', 'csv', 'csv-zip', 'xlsx', 'html'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

interface Format {
  mediaType: string;
  /** Of a file name. */
  extension: string;
  isText: boolean;
  render(report: Report): string | Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
}

export const FORMATS: Readonly<Record<ReportFormat, Format>> = {
  json: { mediaType: 'application/json', extension: 'json', isText: true, render: renderJson },
  csv: { mediaType: 'text/csv', extension: 'csv', isText: true, render: renderCsv },
  'csv-zip': {
    mediaType: 'application/zip',
    extension: 'zip',
    isText: false,
    render: renderCsvZip,
  },
  xlsx: {
    mediaType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    extension: 'xlsx',
    isText: false,
    render: async (report) => new Uint8Array(await renderXlsx(report)),
  },
  html: { mediaType: 'text/html', extension: 'html', isText: true, render: renderHtml },
};
