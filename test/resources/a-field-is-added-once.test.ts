/**
 * A field that is added to a definition appears wherever such a thing is shown, without another
 * line: API, document, command line, console, CSV and workbook.
 */
import { OpenAPIHono, z } from '@hono/zod-openapi';
import { unzipSync } from 'fflate';
import { expect, it } from 'vitest';
import { numberPosition, paging } from '../../src/api/http/pages.ts';
import { makeRouter } from '../../src/api/http/router.ts';
import { filtersOf } from '../../src/api/http/schemas.ts';
import { lineOf } from '../../src/cli/api/table.ts';
import { workbookOf } from '../../src/reports/render/workbook.ts';
import { csvHead, csvRow } from '../../src/resources/cells.ts';
import { instant, text } from '../../src/resources/fields.ts';
import { period } from '../../src/resources/ledger/period.ts';
import { columnsOf, linesOf } from '../../src/resources/reports/sections.ts';
import { resource, type Shown } from '../../src/resources/resource.ts';
import { useApi } from '../api/rig.ts';

const api = useApi();
/** A module of the browser, whose types are those of a browser. */
const CONSOLE = '../../src/console/web/kit/columns.ts';

const fields = {
  ...period.fields,
  auditor: text('Who looks at it from outside', { title: 'Outside auditor' }),
  audited_at: instant(),
};
const audited = resource('AuditedPeriod', fields, {
  columns: ['id', 'auditor', 'audited_at'],
  filters: { auditor: text() },
});
type Audited = Shown<typeof audited>;

it('A field added to a definition appears in API, document, commands, console, CSV and workbook', async () => {
  const app = new OpenAPIHono();
  const { keys, audit, log } = api;
  const { trusted, sessions } = api.deps;
  const router = makeRouter({ app, keys, sessions, audit, log, bodyBytesMax: 1_000, trusted });
  const names = Object.keys(period.fields).map((name) => [
    name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
    null,
  ]);
  router.listOf({
    tag: 'periods',
    scope: 'read',
    path: '/api/audited',
    summary: 'List audited periods',
    request: z.object({ query: z.strictObject({ ...paging, ...filtersOf(audited.filters) }) }),
    items: audited,
    parsePosition: numberPosition,
    position: () => 1n,
    async list({ query: { auditor = 'anyone' } }) {
      const row = {
        ...Object.fromEntries(names),
        id: 'per_1',
        auditor,
        auditedAt: 1_767_225_600_000,
      };
      return [row as never];
    },
  });
  const answer = await app.request('/api/audited?auditor=kim', {
    headers: { authorization: `Bearer ${await api.keyFor('read')}` },
  });
  const { data } = (await answer.json()) as { data: Audited[] };
  const [shown] = data;
  expect(shown).toMatchObject({ auditor: 'kim', audited_at: '2026-01-01T00:00:00.000Z' });

  const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: '', version: '' } });
  const described = document.components?.schemas?.AuditedPeriod;
  expect(described).toMatchObject({
    properties: { auditor: { description: 'Who looks at it from outside' } },
    required: expect.arrayContaining(['auditor', 'audited_at']),
    'x-columns': ['id', 'auditor', 'audited_at'],
  });

  expect(lineOf(audited, shown as Audited)).toBe('per_1  kim  2026-01-01T00:00:00.000Z');

  const { columnsFor } = await import(CONSOLE);
  const columns: { head: string; of: (row: Audited) => unknown }[] = columnsFor(audited);
  expect(columns.map(({ head }) => head)).toEqual(['Id', 'Outside auditor', 'Audited at']);
  expect(columns[1]?.of(shown as Audited)).toBe('kim');

  const cells = columnsOf({
    id: fields.id,
    auditor: fields.auditor,
    audited_at: fields.audited_at,
  });
  const lines = linesOf(cells, data);
  const heads = cells.map(({ name }) => name);
  const rows = lines.map((line) => csvRow(heads.map((head) => line[head])));
  expect([csvHead(heads, false), ...rows].join('')).toBe(
    'id,auditor,audited_at\r\nper_1,kim,2026-01-01T00:00:00.000Z\r\n',
  );
  const book = await workbookOf(
    [{ name: 'periods', columns: heads, lines, sums: [] }],
    'Asia/Seoul',
  );
  const sheet = Object.values(unzipSync(book)).map((bytes) => Buffer.from(bytes).toString());
  expect(sheet.join('')).toContain('audited_at (Asia/Seoul)');
  // 2026-01-01 09:00, in days since 1899-12-30.
  expect(sheet.join('')).toContain('<v>46023.375</v>');
});
