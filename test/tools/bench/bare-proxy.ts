/**
 * What the gateway is measured against: a bare proxy that records nothing, as the frame's own
 * manual has it. Hono's proxy helper sends by `fetch`, which is undici's. A process of its own; its
 * arguments are the service and a token.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { proxy } from 'hono/proxy';

const [service = '', token = ''] = process.argv.slice(2);
const app = new Hono();
app.all('/v1/*', (c) => {
  const { pathname, search } = new URL(c.req.url);
  const headers = { ...c.req.header(), authorization: `Bearer ${token}` };
  return proxy(`${service}${pathname}${search}`, { ...c.req, headers });
});
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
