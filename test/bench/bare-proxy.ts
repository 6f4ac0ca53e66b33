/**
 * What the gateway is measured against: a proxy of a few lines that records nothing, made of the
 * same frame. A process of its own: `node bare-proxy.ts <address of the service> <token>`.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Pool } from 'undici';
import { printLine } from '../../src/kernel/terminal.ts';

const [service = '', token = ''] = process.argv.slice(2);
const pool = new Pool(service, { connections: 256 });
const app = new Hono();
app.all('/v1/*', async (c) => {
  const answer = await pool.request({
    method: 'POST',
    path: new URL(c.req.url).pathname,
    headers: {
      'content-type': c.req.header('content-type') ?? 'application/json',
      authorization: `Bearer ${token}`,
    },
    body: Buffer.from(await c.req.arrayBuffer()),
  });
  const body = await answer.body.arrayBuffer();
  return new Response(body, {
    status: answer.statusCode,
    headers: { 'content-type': String(answer.headers['content-type']) },
  });
});
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  printLine(`ready at http://127.0.0.1:${port}`);
});
