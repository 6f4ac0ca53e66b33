/** One report, rendered in place as it is printed, and its files. */

import {
  FORMATS,
  REPORT_FORMATS,
  type ReportFormat,
  type reportFiles,
} from '../../../../resources/reports/report.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { type Problem, problemOf, send, useData } from '../../kit/api.ts';
import { Card, Code, Facts, Failed, Pending, saveFile, Time, View } from '../../kit/elements.ts';
import { html, useEffect, useRef, useState } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import { periodText, type Report } from './reports.ts';

export default function ReportView({ ids: [id = ''] }: ViewProps) {
  const path = `/api/reports/${encodeURIComponent(id)}`;
  const { data, problem, reload } = useData<Report>(path);
  const files = useData<Shown<typeof reportFiles>>(`${path}/files`).data?.data ?? [];
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  return html`<${View}
    title="Report"
    lead=${periodText(data.period_from, data.period_to)}
    actions=${html`<${Downloads} path=${path} id=${id} />`}
  >
    <${Rendered} path=${path} />
    <${Card} title="Where it comes from">
      <${Facts}
        pairs=${[
          ['Requested by', data.requested_by],
          ['Made', html`<${Time} at=${data.created_at} exact />`],
          ['Known until', html`<${Time} at=${data.known_at} exact />`],
          ['SHA-256', html`<${Code} text=${data.hash} whole />`],
          ['Files', files.length > 0 ? files.map(fileText) : null],
          ['Id', html`<${Code} text=${data.id} whole />`],
        ]}
      />
    <//>
  <//>`;
}

const fileText = ({ format, path, problem }: Shown<typeof reportFiles>['data'][number]) =>
  html`<div>${path ?? `${format}: ${problem ?? 'not yet written'}`}</div>`;

/** The document with its own style sheet, as a part of the page, so that it is printed whole. */
function Rendered({ path }: { path: string }) {
  const { data: page, problem, reload } = useData<string>(`${path}?format=html`);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (page !== undefined && place.current) showIn(place.current, page);
  }, [page]);
  if (page === undefined) return html`<${Pending} problem=${problem} retry=${reload} />`;
  return html`<div class="report-page" ref=${place}></div>`;
}

/** What is parsed this way runs no script; the policy of the page allows no handler. */
function showIn(place: HTMLElement, page: string): void {
  const [before, style = '', after] = page.split(/<\/?style>/);
  const parsed = new DOMParser().parseFromString(`${before}${after}`, 'text/html');
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' });
  root.adoptedStyleSheets = [sheet];
  root.replaceChildren(...parsed.body.children);
}

/** Files are fetched because a link shows no problem. */
function Downloads({ path, id }: { path: string; id: string }) {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const save = async (format: ReportFormat) => {
    try {
      const answer = await send('GET', `${path}?format=${format}`);
      saveFile(`${id}.${FORMATS[format].extension}`, await answer.blob());
      setProblem(undefined);
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return html`<${Failed} problem=${problem} />
    <span class="muted">Download</span>
    ${REPORT_FORMATS.map(
      (format) => html`<button type="button" class="quiet" onClick=${() => save(format)}>
        ${FORMATS[format].title}
      </button>`,
    )}`;
}
