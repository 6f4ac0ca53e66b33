/** `/api/reports`: reconciliation reports in each format, their files and their lines. */
import { z } from '@hono/zod-openapi';
import { must } from '../../../kernel/errors.ts';
import type { LinePosition } from '../../../reports/reports.ts';
import { MOMENT_WORDS } from '../../../resources/ledger/period.ts';
import { reportWithContent } from '../../../resources/reports/content.ts';
import {
  FORMATS,
  REPORT_FORMATS,
  type ReportFormat,
  report,
  reportFiles,
  reportLine,
} from '../../../resources/reports/report.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, type ParsePosition, paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { type Router, reply } from '../../http/router.ts';
import { filtersOf, idInput, momentInput, schemaOf, spanInput } from '../../http/schemas.ts';

const reportInput = z
  .strictObject({
    kind: z.literal('reconciliation'),
    period: spanInput.optional(),
    from: momentInput.optional(),
    to: momentInput.optional().openapi({ description: `Exclusive; ${MOMENT_WORDS}` }),
  })
  .refine(
    ({ period, from, to }) => (period ? !from && !to : from && to),
    'name either period, or from and to',
  );

const binary = z.string().openapi({ format: 'binary' });

const base = { tag: 'reports', scope: 'read' } as const;

export function addReports(router: Router, { reports }: Pick<ApiDeps, 'reports'>): void {
  router.listOf({
    ...base,
    path: '/api/reports',
    summary: 'List reports without their content, newest first',
    request: z.object({
      query: z.strictObject({ ...paging, ...filtersOf(report.filters) }),
    }),
    items: report,
    parsePosition: idPosition('rep'),
    list: ({ query: { kind } }, { after: before, limit }) =>
      reports.listReports({ before, kind, limit }),
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'post',
    scope: ['manage', 'decide'],
    path: '/api/reports',
    summary: 'Make the reconciliation report of a period; of a closed one it is that of its close',
    request: z.object({ body: reportInput }),
    status: 201,
    response: 'The report without its content',
    answer: report,
    handle: ({ body: { period, from, to } }, { owner }) => {
      const named = period ?? { from: must(from, 'begin'), to: must(to, 'end') };
      return reports.makeReconciliation({ ...named, requestedBy: owner });
    },
  });
  router.raw({
    ...base,
    method: 'get',
    path: '/api/reports/{id}',
    summary: 'Read a report in the format of `format`, else of Accept, else as JSON',
    request: z.object({
      params: z.object({ id: idInput('rep') }),
      query: z.strictObject({
        format: z.enum(REPORT_FORMATS).optional(),
        bom: z
          .enum(['0', '1'])
          .optional()
          .openapi({ description: '0: CSV without the mark of UTF-8 that spreadsheets need' }),
      }),
    }),
    responses: {
      200: {
        description: 'The report',
        content: {
          'application/json': { schema: schemaOf(reportWithContent) },
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
      const rendered = await reports.renderReport(id, format, { bom: query.bom !== '0' });
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
  router.answer({
    ...base,
    method: 'get',
    path: '/api/reports/{id}/files',
    summary: 'The files of a report in the folder or bucket of the setting, written or due',
    request: z.object({ params: z.object({ id: idInput('rep') }) }),
    response: 'The files; none when the setting had neither',
    answer: reportFiles,
    async handle({ params: { id } }) {
      await reports.getReport(id);
      return { data: await reports.filesOf(id) };
    },
  });
  addLines(router, reports);
}

const parsePosition: ParsePosition<LinePosition> = (text) => {
  const [, at, transaction] = /^(-?\d{1,15}):(\d{1,18})$/.exec(text) ?? [];
  return at && transaction ? { at: Number(at), transaction: BigInt(transaction) } : undefined;
};

function addLines(router: Router, reports: Pick<ApiDeps['reports'], 'listLines'>): void {
  router.listOf({
    ...base,
    path: '/api/reports/{id}/lines',
    summary: 'List the transactions behind the totals of a report, in the order of their effect',
    request: z.object({
      params: z.object({ id: idInput('rep') }),
      query: z.strictObject({
        ...paging,
        ...filtersOf(reportLine.filters),
        reason_type: z
          .string()
          .max(1_000)
          .optional()
          .openapi({ description: 'Empty: those without a reason' }),
      }),
    }),
    items: reportLine,
    parsePosition,
    list: ({ params, query: { kind, reason_type: reason, account } }, page) =>
      reports.listLines(
        params.id,
        { kind, reasonType: reason === '' ? null : reason, account },
        page,
      ),
    position: ({ effectiveAt, transactionId }) => `${effectiveAt}:${transactionId}`,
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
