/**
 * What the gateway is measured against: a proxy of a few lines that records nothing, made of the
 * same frame (Hono, undici). A process of its own; its arguments are the service and a token.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Pool } from 'undici';

const [service = '', token = ''] = process.argv.slice(2);
const pool = new Pool(service, { connections: 256 });
const app = new Hono();
app.all('/v1/*', async (c) => {
  const answer = await pool.request({
    method: 'POST',
    path: new URL(c.req.url).pathname,
    headers: {
      'content-type': c.req.header('content-type') ?? '',
      authorization: `Bearer ${token}`,
    },
    body: Buffer.from(await c.req.arrayBuffer()),
  });
  const body = await answer.body.arrayBuffer();
  const headers = {
    'content-type': String(answer.headers['content-type']),
    'content-length': String(body.byteLength),
  };
  return new Response(body, { status: answer.statusCode, headers });
});
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
