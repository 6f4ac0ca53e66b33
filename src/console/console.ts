/**
 * The console: pages for status, operations and reports. The pages hold no data and need no key;
 * their script calls the API with a key that the user enters and that stays in the tab. A content
 * security policy allows only that script, by its hash.
 */
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { isId } from '../kernel/ids.ts';
import { OPERATION_PAGE, OPERATIONS_PAGE } from './operation-pages.ts';
import { REPORT_PAGE, START_PAGE } from './pages.ts';
import { OPERATION_SCRIPT } from './web/operation.ts';
import { OPERATIONS_SCRIPT } from './web/operations.ts';
import { REPORT_SCRIPT } from './web/report.ts';
import { START_SCRIPT } from './web/start.ts';
import { STYLE } from './web/style.ts';

/** Serves `/`, `/operations`, `/operations/{id}` and `/reports/{id}`; mounted beside the API. */
export function makeConsole(): Hono {
  const app = new Hono();
  const start = pageOf(START_PAGE, START_SCRIPT, `'${hashOf(STYLE)}'`);
  // The frame of a report inherits this policy and has its own inline style.
  const report = pageOf(REPORT_PAGE, REPORT_SCRIPT, "'unsafe-inline'");
  const operations = pageOf(OPERATIONS_PAGE, OPERATIONS_SCRIPT, `'${hashOf(STYLE)}'`);
  const operation = pageOf(OPERATION_PAGE, OPERATION_SCRIPT, `'${hashOf(STYLE)}'`);
  app.get('/', (c) => c.body(start.body, 200, start.headers));
  app.get('/operations', (c) => c.body(operations.body, 200, operations.headers));
  app.get('/operations/:id', (c) =>
    isId('op', c.req.param('id')) ? c.body(operation.body, 200, operation.headers) : c.notFound(),
  );
  app.get('/reports/:id', (c) =>
    isId('rep', c.req.param('id')) ? c.body(report.body, 200, report.headers) : c.notFound(),
  );
  return app;
}

function pageOf(markup: string, script: string, styles: string) {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src ${styles}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    body: markup.replace('{{style}}', () => STYLE).replace('{{script}}', () => script),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy.join('; '),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
    },
  };
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
