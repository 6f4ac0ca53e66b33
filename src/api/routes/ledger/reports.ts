/** `/api/reports`: reports as rows, made on request, and rendered in the form that is asked for. */
import { createRoute, z } from '@hono/zod-openapi';
import { isId } from '../../../kernel/ids.ts';
import {
  type Report,
  type ReportHead,
  renderCsv,
  renderHtml,
  renderJson,
} from '../../../reports/reports.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply, replyText } from '../../http/auth.ts';
import {
  anyJson,
  idIn,
  instantIn,
  instantOut,
  page,
  pageOf,
  paging,
  placeIn,
  textIn,
  timeText,
} from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody, refusals } from '../../http/problems.ts';

const FORMATS = ['json', 'csv', 'html'] as const;
type Format = (typeof FORMATS)[number];
const MEDIA_TYPES: Record<Format, string> = {
  json: 'application/json',
  csv: 'text/csv',
  html: 'text/html',
};

const head = z
  .object({
    id: z.string(),
    kind: z.string(),
    period_from: instantOut,
    period_to: instantOut.openapi({ description: 'Excluded' }),
    known_at: instantOut.openapi({ description: 'The cut-off' }),
    requested_by: z.string(),
    verdict: z.enum(['balanced', 'breaks']),
    breaks: z.int(),
    hash: z.string().openapi({ description: 'SHA-256 of the canonical content' }),
    created_at: instantOut,
  })
  .openapi('Report');
const whole = head.extend({ content: anyJson }).openapi('ReportWithContent');

const wish = z.strictObject({
  kind: z.literal('reconciliation'),
  from: instantIn,
  to: instantIn.openapi({ description: 'Excluded' }),
});

const base = { tags: ['reports'], ...deps('read') };

const listRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/reports',
  summary: 'Reports without their content, the newest first',
  request: { query: z.strictObject({ ...paging, kind: textIn(100).optional() }) },
  responses: { 200: json('A page of reports', pageOf(head)), ...refusals },
});
const makeRoute = createRoute({
  ...{ ...base, ...deps('manage') },
  method: 'post',
  path: '/api/reports',
  summary: 'Makes the reconciliation of a period',
  request: { body: jsonBody(wish) },
  responses: { 201: json('The report, without its content', head), ...bodyRefusals },
});
const findRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/reports/{id}',
  summary: 'One report: as JSON, or in the form that format or else Accept asks for',
  request: {
    params: z.object({ id: idIn('rep') }),
    query: z.strictObject({ format: z.enum(FORMATS).optional() }),
  },
  responses: {
    200: {
      description: 'The report',
      content: {
        'application/json': { schema: whole },
        'text/csv': { schema: z.string() },
        'text/html': { schema: z.string() },
      },
    },
    ...refusals,
  },
});

export function addReports(app: Api, deps: ApiDeps): void {
  const { reports } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor, kind } = c.req.valid('query');
    const before = placeIn(cursor, (place) => isId('rep', place));
    const rows = await reports.listReports({ before, kind, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, shown, ({ id }) => id),
      200,
    );
  });
  app.openapi(guarded(deps, makeRoute), async (c) => {
    const { from, to } = c.req.valid('json');
    const requestedBy = c.get('caller').owner;
    return reply(c, shown(await reports.makeReconciliation({ from, to, requestedBy })), 201);
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const report = await reports.getReport(c.req.valid('param').id);
    const format = c.req.valid('query').format ?? acceptedFormat(c.req.header('accept'));
    if (format === 'json') return replyText(c, renderJson(report), 200);
    const text = format === 'csv' ? renderCsv(report) : renderHtml(report);
    const shownAs = format === 'csv' ? 'attachment' : 'inline';
    return c.body(text, 200, {
      'content-type': `${MEDIA_TYPES[format]}; charset=utf-8`,
      'content-disposition': `${shownAs}; filename="${report.id}.${format}"`,
      // Opened by itself a report runs nothing and asks nobody.
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  });
}

/** The first form that the caller accepts, by the order in which it names them; else JSON. */
function acceptedFormat(accept = ''): Format {
  const named = accept.split(',').map((range) => range.split(';')[0]?.trim().toLowerCase());
  const first = named.find((type) => FORMATS.some((format) => MEDIA_TYPES[format] === type));
  return FORMATS.find((format) => MEDIA_TYPES[format] === first) ?? 'json';
}

function shown(row: ReportHead | Report) {
  return {
    id: row.id,
    kind: row.kind,
    period_from: timeText(row.periodFrom),
    period_to: timeText(row.periodTo),
    known_at: timeText(row.knownAt),
    requested_by: row.requestedBy,
    verdict: row.verdict,
    breaks: row.breaks,
    hash: row.hash,
    created_at: timeText(row.createdAt),
  };
}
