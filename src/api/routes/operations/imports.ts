/** `/api/imports`: files of operations that were made elsewhere, checked, proved and recorded. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import { jsonText, tryParseJson } from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import { givenOf } from '../../../resources/fields.ts';
import {
  DATE_ORDERS,
  DECIMAL_SIGNS,
  DELIMITERS,
  FORMATS,
  imported,
  importRow,
  THOUSANDS,
  UNIX_UNITS,
} from '../../../resources/operations/import.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { bodyOf } from '../../http/body.ts';
import { idPosition, numberPosition, paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { filtersOf, idInput, reasonInput, schemaOf, textInput } from '../../http/schemas.ts';

const OPTIONS_MAX = 10_000;
const texts = z.record(z.string(), z.string());

const options = z.strictObject({
  format: z.enum(FORMATS).optional(),
  encoding: textInput(40).optional(),
  delimiter: z.enum(DELIMITERS).optional(),
  map: texts.optional(),
  set: texts.optional(),
  values: z.record(z.string(), texts).optional(),
  time_zone: textInput(64).optional(),
  date_order: z.enum(DATE_ORDERS).optional(),
  unix_time: z.enum(UNIX_UNITS).optional(),
  thousands: z.enum(THOUSANDS).optional(),
  decimal_sign: z.enum(DECIMAL_SIGNS).optional(),
});

const query = z.strictObject({
  file_name: textInput(255)
    .default('import')
    .openapi({ description: 'How it is listed; its ending names the format, unless options do' }),
  options: z
    .string()
    .max(OPTIONS_MAX)
    .transform(tryParseJson)
    .pipe(options)
    .optional()
    .openapi({
      type: 'string',
      description:
        'JSON: how rows become reports, as in the mapping file of the command. format, encoding, ' +
        'delimiter, map, set, values, time_zone, date_order, unix_time, thousands, decimal_sign',
    }),
});

const params = z.object({ id: idInput('imp') });
const base = { tag: 'imports' as const };
const showImport = shower(imported);

type Deps = Pick<ApiDeps, 'imports' | 'wake' | 'stopping'>;

export function addImports(router: Router, { imports, wake, stopping }: Deps): void {
  router.raw({
    ...base,
    method: 'post',
    path: '/api/imports',
    scope: 'manage',
    summary: 'Import a file of operations that were made elsewhere',
    description:
      'CSV or NDJSON of at most 512 MiB and 1,000,000 rows. It is checked and its balances are ' +
      'proved; nothing is recorded before `record`. The same file with the same options is that ' +
      'import while it is checked or recorded; one that waits to be recorded ends then.',
    request: z.object({ query }),
    content: { 'application/octet-stream': { schema: z.string() } },
    responses: {
      201: json('The import, whose rows are checked from now on', schemaOf(imported)),
      ...problemsOf('post', true, { 429: 'Too many files arrive; see Retry-After' }),
    },
    async handle({ query: { file_name: fileName, options: given = {} } }, c, caller, audit) {
      if (!caller) throw new Failure('unauthorized');
      const body = bodyOf(c.req);
      if (!body) throw new Failure('invalid_request', 'the file is empty');
      const upload = { fileName, options: given, ...caller, body, stop: stopping };
      const found = await audit({ name: fileName }, () => imports.upload(upload));
      wake('imports');
      return reply(c, jsonText(showImport(found)), 201);
    },
  });
  router.listOf({
    ...base,
    scope: 'read',
    path: '/api/imports',
    summary: 'List imports, newest first',
    request: z.object({ query: z.strictObject({ ...paging, ...filtersOf(imported.filters) }) }),
    items: imported,
    parsePosition: idPosition('imp'),
    list: ({ query: filters }, page) =>
      imports.list({ ...page, ...givenOf(imported.filters, filters) }),
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    scope: 'read',
    method: 'get',
    path: '/api/imports/{id}',
    summary: 'Read an import, its progress and what it would record',
    request: z.object({ params }),
    response: 'The import',
    answer: imported,
    handle: ({ params: { id } }) => imports.get(id),
  });
  router.listOf({
    ...base,
    scope: 'read',
    path: '/api/imports/{id}/rows',
    summary:
      'List the rows of an import in the order of the file. They are kept for a month after it ' +
      'was done, or a day after it was cancelled',
    request: z.object({
      params,
      query: z.strictObject({ ...paging, ...filtersOf(importRow.filters) }),
    }),
    items: importRow,
    parsePosition: numberPosition,
    list: ({ params: { id }, query: filters }, page) =>
      imports.listRows(id, { ...page, ...givenOf(importRow.filters, filters) }),
    position: ({ n }) => BigInt(n),
  });
  addEnds(router, { imports, wake });
}

const recordBody = z
  .strictObject({
    reason: reasonInput
      .optional()
      .openapi({ description: 'Why, although balances contradict it; kept in each operation' }),
  })
  .optional()
  .openapi('ImportRecording');

function addEnds(router: Router, { imports, wake }: Omit<Deps, 'stopping'>): void {
  router.answer({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/imports/{id}/record',
    summary: 'Record the new rows of an import that is ready',
    description:
      'They are checked and proved once more, after the imports that were asked for before: more ' +
      'may be recorded by then. It is `ready` again if balances contradict it without a reason.',
    request: z.object({ params, body: recordBody }),
    status: 202,
    response: 'The import, which is checked once more and then recorded',
    answer: imported,
    async handle({ params: { id }, body }, caller) {
      const found = await imports.record(id, byOf(caller), body?.reason);
      wake('imports');
      return found;
    },
  });
  router.answer({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/imports/{id}/cancel',
    summary: 'End an import; what it has recorded stays',
    request: z.object({ params }),
    response: 'The import',
    answer: imported,
    handle: ({ params: { id } }, caller) => imports.cancel(id, byOf(caller)),
  });
}

function byOf({ owner, scopes }: Caller) {
  return { owner, admin: scopes.includes('admin') };
}
