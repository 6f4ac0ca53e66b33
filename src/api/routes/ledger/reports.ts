/** `/api/reports`: reconciliation reports, made on request; as JSON, CSV, XLSX or HTML. */
import { z } from '@hono/zod-openapi';
import {
  FORMATS,
  REPORT_FORMATS,
  type ReportFormat,
  type ReportSummary,
} from '../../../reports/reports.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  anyJson,
  idInput,
  instant,
  instantInput,
  instantText,
  textInput,
} from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { type Router, reply } from '../../http/router.ts';

const summary = z
  .object({
    id: z.string(),
    kind: z.string(),
    period_from: instant,
    period_to: instant.openapi({ description: 'Exclusive' }),
    known_at: instant.openapi({
      description: 'Cut-off: time of the last ledger batch in the report',
    }),
    requested_by: z.string(),
    verdict: z.enum(['balanced', 'breaks']),
    breaks: z.int(),
    provisional: z.boolean().openapi({ description: 'Made while the period still ran' }),
    hash: z.string().openapi({ description: 'SHA-256 of the canonical content' }),
    created_at: instant,
  })
  .openapi('Report');
const file = z
  .object({
    format: z.enum(REPORT_FORMATS),
    path: z.string().nullable().openapi({ description: 'Null until it is written' }),
    written_at: instant.nullable(),
    problem: z
      .string()
      .nullable()
      .openapi({ description: 'Why the last attempt failed; it is tried again' }),
  })
  .openapi('ReportFile');
const report = summary.extend({ content: anyJson }).openapi('ReportWithContent');

const reportInput = z.strictObject({
  kind: z.literal('reconciliation'),
  from: instantInput,
  to: instantInput.openapi({ description: 'Exclusive' }),
});

const binary = z.string().openapi({ format: 'binary' });

const base = { tag: 'reports', scope: 'read' as const };

export function addReports(router: Router, { reports }: Pick<ApiDeps, 'reports'>): void {
  router.list({
    ...base,
    path: '/api/reports',
    summary: 'List reports without their content, newest first',
    request: z.object({
      query: z.strictObject({ ...paging, kind: textInput(100).optional() }),
    }),
    item: summary,
    parsePosition: idPosition('rep'),
    list: ({ query: { kind } }, { after: before, limit }) =>
      reports.listReports({ before, kind, limit }),
    output: summaryOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'post',
    scope: 'manage',
    path: '/api/reports',
    summary: 'Make the reconciliation report of a period; of a closed one it is that of its close',
    request: z.object({ body: reportInput }),
    status: 201,
    response: 'The report without its content',
    schema: summary,
    handle: async ({ body: { from, to } }, { owner }) =>
      summaryOutput(await reports.makeReconciliation({ from, to, requestedBy: owner })),
  });
  router.raw({
    ...base,
    method: 'get',
    path: '/api/reports/{id}',
    summary: 'Read a report in the format of `format`, else of Accept, else as JSON',
    request: z.object({
      params: z.object({ id: idInput('rep') }),
      query: z.strictObject({ format: z.enum(REPORT_FORMATS).optional() }),
    }),
    responses: {
      200: {
        description: 'The report',
        content: {
          'application/json': { schema: report },
          'text/csv': { schema: z.string() },
          [FORMATS['csv-zip'].mediaType]: { schema: binary },
          [FORMATS.xlsx.mediaType]: { schema: binary },
          'text/html': { schema: z.string() },
          'text/plain': { schema: z.string().openapi({ description: 'A journal of hledger' }) },
        },
      },
      ...problemsOf('get', false),
    },
    async handle({ params, query }, c) {
      const { id } = params;
      const format = query.format ?? acceptedFormat(c.req.header('accept'));
      const { mediaType, extension, isText } = FORMATS[format];
      const rendered = await reports.renderReport(id, format);
      if (format === 'json') return reply(c, String(rendered));
      const disposition = format === 'html' ? 'inline' : 'attachment';
      return c.body(rendered, 200, {
        'content-type': `${mediaType}${isText ? '; charset=utf-8' : ''}`,
        'content-disposition': `${disposition}; filename="${id}.${extension}"`,
        // Opened on its own, the page runs no script and loads nothing.
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      });
    },
  });
  addFiles(router, reports);
}

function addFiles(
  router: Router,
  reports: Pick<ApiDeps['reports'], 'getReport' | 'filesOf'>,
): void {
  router.add({
    ...base,
    method: 'get',
    path: '/api/reports/{id}/files',
    summary: 'The files of a report in the folder or bucket of the setting, written or due',
    request: z.object({ params: z.object({ id: idInput('rep') }) }),
    response: 'The files; none when the setting had neither',
    schema: z.object({ data: z.array(file) }),
    async handle({ params: { id } }) {
      await reports.getReport(id);
      const files = await reports.filesOf(id);
      return {
        data: files.map(({ writtenAt, ...rest }) => ({
          ...rest,
          written_at: instantText(writtenAt),
        })),
      };
    },
  });
}

/** The first format that Accept names. */
function acceptedFormat(accept = ''): ReportFormat {
  const named = accept.split(',').map((range) => range.split(';')[0]?.trim().toLowerCase());
  const formats = named.flatMap(
    (type) => REPORT_FORMATS.find((format) => FORMATS[format].mediaType === type) ?? [],
  );
  return formats[0] ?? 'json';
}

function summaryOutput(row: ReportSummary) {
  return {
    id: row.id,
    kind: row.kind,
    period_from: instantText(row.periodFrom),
    period_to: instantText(row.periodTo),
    known_at: instantText(row.knownAt),
    requested_by: row.requestedBy,
    verdict: row.verdict,
    breaks: row.breaks,
    provisional: row.provisional,
    hash: row.hash,
    created_at: instantText(row.createdAt),
  };
}
