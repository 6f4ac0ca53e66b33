/** What happens on the wire: odd methods, long heads, order of answers, connections cut or held. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeServer } from '../../src/kernel/http-server.ts';
import { type Caller, startCaller, stopAll } from './client.ts';

let caller: Caller;
const THERE = '/v1/system/maintenance';

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);

const request = (target: string, more = '', method = 'GET') =>
  `${method} ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;

/** Sends text and answers what comes back until the connection ends. */
function exchanged(text: string, port = caller.sandbox.port): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let back = '';
    socket.setTimeout(5_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      back += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(back));
    socket.write(text);
  });
}

describe('A connection', () => {
  test('carries one request after another, and answers them in order', async () => {
    const back = await exchanged(
      request(THERE) + request('/v1/oauth/nothing') + request(THERE, 'Connection: close\r\n'),
    );
    expect([...back.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '200',
      '404',
      '200',
    ]);
  });

  test('that turns to nonsense first gets the answers that it is owed', async () => {
    caller.sandbox.control.addFault({ kind: 'delay', endpoint: 'maintenance', delay_ms: 50 });
    const back = await exchanged(`${request(THERE)}nonsense\r\n\r\n`);
    expect([...back.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '200',
      '400',
    ]);
    expect(back).toMatch(/ACTIVE.*invalid_request/s);
  });

  test('whose body breaks is refused, and its request is not applied', async () => {
    const requests = caller.sandbox.control.state().counts.requests;
    const more = 'Transfer-Encoding: chunked\r\n';
    const back = await exchanged(`${request('/v1/oauth/token', more, 'POST')}zz\r\n`);
    expect(back).toMatch(/^HTTP\/1\.1 400.*invalid_request/s);
    expect(caller.sandbox.control.state().counts.requests).toBe(requests);
  });

  test('that is a tunnel is refused, and may break at any time', async () => {
    expect(await exchanged(request('x:1', '', 'CONNECT'))).toMatch(/^HTTP\/1\.1 400/);
    for (let i = 0; i < 20; i += 1) {
      const socket = connect(caller.sandbox.port, '127.0.0.1');
      socket.on('error', () => {});
      await once(socket, 'connect');
      socket.write(request('x:1', '', 'CONNECT') + 'x'.repeat(100_000));
      socket.resetAndDestroy();
    }
    expect((await caller.send('GET', THERE)).status).toBe(200);
  });
});

test('HEAD answers the head of GET, OPTIONS is no method of any path', async () => {
  const get = await exchanged(request(THERE, 'Connection: close\r\n'));
  const head = await exchanged(request(THERE, 'Connection: close\r\n', 'HEAD'));
  expect(head).toBe(get.slice(0, get.indexOf('\r\n\r\n') + 4));
  const options = await caller.send('OPTIONS', THERE);
  expect([options.status, options.headers.get('allow')]).toEqual([404, null]);
});

test('A head of more than 16 KiB is refused with 431', async () => {
  const back = await exchanged(request(`/v1/${'x'.repeat(20_000)}`));
  expect(back).toMatch(/^HTTP\/1\.1 431 .*"status":431,"error":\{"code":431/s);
});

test('A request that dribbles in is refused with 408 at its deadline', async () => {
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
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const body = 'Content-Length: 9\r\n';
  expect(await exchanged('GET / HT', port)).toMatch(/^HTTP\/1\.1 408/);
  expect(await exchanged(`${request('/', body, 'POST')}abc`, port)).toMatch(/^HTTP\/1\.1 408/);
  server.close();
});

test('No head makes an answer of another shape', async () => {
  const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
  const known = fc.constantFrom(
    ...'authorization accept-encoding expect upgrade transfer-encoding content-length'.split(' '),
    ...'connection content-type host range if-none-match cookie x-forwarded-for te'.split(' '),
  );
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('chunked', 'close', 'websocket', '100-continue', '-1', '1e3', 'Basic ', 'h2c'),
  );
  const heads = fc.array(fc.tuple(fc.oneof(token, known), value), { maxLength: 8 });
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'PURGE', 'LOCK', 'M-SEARCH', 'x');
  const path = fc.constantFrom(THERE, '/v1/oauth/token', '/v1/app/token/account', '/_sandbox', '/');
  await fc.assert(
    fc.asyncProperty(method, path, heads, async (verb, target, lines) => {
      const more = lines.map(([name, text]) => `${name}: ${text}\r\n`).join('');
      const back = await ended(request(target, `${more}Connection: close\r\n`, verb));
      if (back !== '') expect(back).toMatch(/^HTTP\/1\.1 \d{3} /);
      expect(back).not.toMatch(/\.ts:\d|node_modules|\n +at /);
    }),
    { numRuns: 150 },
  );
  expect((await caller.send('GET', THERE)).status).toBe(200);
});

/** As `exchanged`, with nothing more to come from this side. */
function ended(text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port: caller.sandbox.port, host: '127.0.0.1', allowHalfOpen: true });
    let back = '';
    socket.on('data', (chunk) => {
      back += chunk;
    });
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(back));
    socket.end(text);
  });
}
