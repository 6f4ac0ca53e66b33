/**
 * The leanest proxy that Hono and undici make: a pool of connections, bodies held in memory,
 * headers copied from a list. The fastest proxy that these two libraries allow.
 * Arguments and output are those of `bare-proxy.ts`.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Pool } from 'undici';

/** Headers that end at each hop, and those that are made anew. */
const OWN = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length']);

const [service = '', token = ''] = process.argv.slice(2);
const pool = new Pool(service, { connections: 256 });
const app = new Hono();
app.all('/v1/*', async (c) => {
  const { pathname, search } = new URL(c.req.url);
  const sent = Object.entries(c.req.header()).filter(([name]) => !OWN.has(name));
  const { statusCode, headers, body } = await pool.request({
    method: c.req.method === 'GET' ? 'GET' : 'POST',
    path: pathname + search,
    headers: { ...Object.fromEntries(sent), authorization: `Bearer ${token}` },
    body: c.req.method === 'GET' ? null : Buffer.from(await c.req.arrayBuffer()),
  });
  const copied = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (!OWN.has(name)) for (const one of [value ?? []].flat()) copied.append(name, one);
  return new Response(await body.arrayBuffer(), { status: statusCode, headers: copied });
});
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
