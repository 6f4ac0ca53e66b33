/**
 * The reference for HTTP servers: node:http that answers a constant body of as many bytes as its
 * path names (`/1234`), and does nothing else.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const bodies = new Map<string, string>();

const server = createServer((request, response) => {
  const path = request.url ?? '';
  const body = bodies.get(path) ?? 'x'.repeat(Number(path.slice(1)));
  bodies.set(path, body);
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(body.length),
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port: String(port) })}\n`);
});
process.once('SIGTERM', () => process.exit(0));
