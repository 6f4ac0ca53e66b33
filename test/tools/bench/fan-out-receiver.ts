/**
 * A receiver of webhooks for benches: answers 200, and by `GET` how many there were and when each
 * event arrived by the id of its operation. `DELETE` forgets all. Under `/late` it answers 200
 * after 100 ms, and under `/hangs` never; neither counts.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from '../../../src/kernel/clock.ts';

const LATE_MS = 100;

let count = 0;
let arrivals: [operation: string, at: number][] = [];
const now = () => performance.timeOrigin + performance.now();
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const times = request.url === '/times' ? arrivals : [];
    response.end(JSON.stringify({ count, times, at: now() }));
    return;
  }
  if (request.method === 'DELETE') {
    count = 0;
    arrivals = [];
    response.end();
    return;
  }
  if (request.url === '/late' || request.url === '/hangs') {
    request.resume();
    if (request.url === '/late')
      after(LATE_MS, () => response.writeHead(200, { 'content-length': '0' }).end());
    return;
  }
  count += 1;
  const at = now();
  let body = '';
  request.setEncoding('latin1').on('data', (text: string) => {
    body += text;
  });
  request.once('end', () => {
    const id = /"operation_id":"(op_[^"]+)"/.exec(body)?.[1];
    if (id) arrivals.push([id, at]);
    response.writeHead(200, { 'content-length': '0' }).end();
  });
});
server.keepAliveTimeout = 60_000;
// On every loopback address, so that endpoints have origins of their own.
server.listen(0, '0.0.0.0', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
