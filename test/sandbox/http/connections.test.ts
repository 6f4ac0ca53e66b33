/** HTTP connections: unusual methods, long headers, pipelining, broken bodies, slow requests. */

import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeServer } from '../../../src/kernel/http/server.ts';
import { listen } from '../../harness/listen.ts';
import { useCaller } from '../client.ts';

const caller = useCaller();
const PATH = '/v1/system/maintenance';

const request = (target: string, more = '', method = 'GET') =>
  `${method} ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;

interface Wire {
  port?: number;
  /** End the sending side after the text. */
  end?: boolean;
}

/** Sends text and returns everything received until the connection closes. */
function exchanged(text: string, wire: Wire = {}): Promise<string> {
  const { port = caller.sandbox.port, end = false } = wire;
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: end });
    let back = '';
    socket.setTimeout(5_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      back += chunk;
    });
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(back));
    if (end) socket.end(text);
    else socket.write(text);
  });
}

const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

describe('A connection', () => {
  it('serves pipelined requests in order', async () => {
    const back = await exchanged(
      request(PATH) + request('/v1/oauth/nothing') + request(PATH, 'Connection: close\r\n'),
    );
    expect(statusesOf(back)).toEqual(['200', '404', '200']);
  });

  it('answers the requests before malformed bytes', async () => {
    caller.sandbox.control.addFault({ kind: 'delay', endpoint: 'maintenance', delay_ms: 50 });
    const back = await exchanged(`${request(PATH)}nonsense\r\n\r\n`);
    expect(statusesOf(back)).toEqual(['200', '400']);
    expect(back).toMatch(/ACTIVE.*invalid_request/s);
  });

  it('refuses a request with a broken body and does not apply it', async () => {
    const requests = caller.sandbox.control.state().counts.requests;
    const more = 'Transfer-Encoding: chunked\r\n';
    const back = await exchanged(`${request('/v1/oauth/token', more, 'POST')}zz\r\n`);
    expect(back).toMatch(/^HTTP\/1\.1 400.*invalid_request/s);
    expect(caller.sandbox.control.state().counts.requests).toBe(requests);
  });

  it('refuses CONNECT, and survives its resets', async () => {
    expect(await exchanged(request('x:1', '', 'CONNECT'))).toMatch(/^HTTP\/1\.1 400/);
    for (let i = 0; i < 20; i += 1) {
      const socket = connect(caller.sandbox.port, '127.0.0.1');
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write(request('x:1', '', 'CONNECT') + 'x'.repeat(100_000));
      socket.resetAndDestroy();
    }
    expect((await caller.send('GET', PATH)).status).toBe(200);
  });
});

it('HEAD returns the headers of GET; OPTIONS is not found', async () => {
  const get = await exchanged(request(PATH, 'Connection: close\r\n'));
  const head = await exchanged(request(PATH, 'Connection: close\r\n', 'HEAD'));
  expect(head).toBe(get.slice(0, get.indexOf('\r\n\r\n') + 4));
  const options = await caller.send('OPTIONS', PATH);
  expect([options.status, options.headers.get('allow')]).toEqual([404, null]);
});

it('Headers of more than 16 KiB are refused with 431', async () => {
  const back = await exchanged(request(`/v1/${'x'.repeat(20_000)}`));
  expect(back).toMatch(/^HTTP\/1\.1 431 .*"status":431,"error":\{"code":431/s);
});

it('A request that arrives too slowly is refused with 408 at its deadline', async () => {
  const limits = {
    requestTimeout: 60,
    headersTimeout: 40,
    connectionsCheckingInterval: 10,
    keepAliveTimeout: 5_000,
    maxHeaderSize: 16_384,
    connectionsMax: 10,
  };
  const server = makeServer(
    () => {},
    () => ({ headers: {}, body: '' }),
    limits,
  );
  const port = await listen(server);
  const body = 'Content-Length: 9\r\n';
  expect(await exchanged('GET / HT', { port })).toMatch(/^HTTP\/1\.1 408/);
  expect(await exchanged(`${request('/', body, 'POST')}abc`, { port })).toMatch(/^HTTP\/1\.1 408/);
  server.close();
});

it('No headers change the shape of the response', async () => {
  const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
  const known = fc.constantFrom(
    ...'authorization accept-encoding expect upgrade transfer-encoding content-length'.split(' '),
    ...'connection content-type host range if-none-match cookie x-forwarded-for te'.split(' '),
  );
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('chunked', 'close', 'websocket', '100-continue', '-1', '1e3', 'Basic ', 'h2c'),
  );
  const headers = fc.array(fc.tuple(fc.oneof(token, known), value), { maxLength: 8 });
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'PURGE', 'LOCK', 'M-SEARCH', 'x');
  const path = fc.constantFrom(PATH, '/v1/oauth/token', '/v1/app/token/account', '/_sandbox', '/');
  await fc.assert(
    fc.asyncProperty(method, path, headers, async (verb, target, lines) => {
      const more = lines.map(([name, text]) => `${name}: ${text}\r\n`).join('');
      const back = await exchanged(request(target, `${more}Connection: close\r\n`, verb), {
        end: true,
      });
      if (back !== '') expect(back).toMatch(/^HTTP\/1\.1 \d{3} /);
      expect(back).not.toMatch(/\.ts:\d|node_modules|\n +at /);
    }),
    { numRuns: 100 },
  );
  expect((await caller.send('GET', PATH)).status).toBe(200);
});
