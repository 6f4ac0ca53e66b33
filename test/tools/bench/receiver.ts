/** A receiver of webhooks that answers 200 and counts; `GET /count` answers how many there were. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let count = 0;
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(String(count));
    return;
  }
  count += 1;
  request.resume();
  request.once('end', () => response.writeHead(200, { 'content-length': '0' }).end());
});
server.keepAliveTimeout = 60_000;
// On every loopback address, so that endpoints have origins of their own.
server.listen(0, '0.0.0.0', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
