/** How each format of a report is rendered. */
import { canonicalJson } from '../../kernel/json.ts';
import type { Report, ReportFormat } from '../../resources/reports/report.ts';
import type { LinesNeeded, ReportLines } from '../queries/lines.ts';
import { renderCsv, renderCsvZip, showReport } from './csv.ts';
import { renderHtml } from './html.ts';
import { renderJournal } from './journal.ts';
import { renderXlsx } from './xlsx.ts';

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
