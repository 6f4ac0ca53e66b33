/** The service behind a forward proxy: what goes there, and what a fault of the proxy proves. */
import type { ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import { type Certificate, makeAuthority, trust } from '../harness/certificates.ts';
import { useFolder } from '../harness/folder.ts';
import {
  answering,
  type ForwardProxyOptions,
  startForwardProxy,
} from '../harness/forward-proxy.ts';
import { closeServer, freePort, listen } from '../harness/listen.ts';
import { closeAll, give, post, transportWith, upstreamTo } from './rig.ts';
import { closeLater, http, startRaw, startScripted } from './service.ts';

afterEach(closeAll);
const authority = makeAuthority(useFolder());
beforeAll(async () => trust(await authority));

const NAME = 'service.test';
const LOGIN = { user: 'me', password: 'p@ss-word' };

/** A proxy that knows the service by name, and exchanges by way of it. */
async function open(port: number, options: ForwardProxyOptions = {}) {
  const ports = { [`${NAME}:${port}`]: port };
  const proxy = closeLater(await startForwardProxy({ ports, ...options }));
  const proxies = { http: proxy.url, https: proxy.url };
  const transport = transportWith({ proxies, connectTimeoutMs: 300 });
  const exchange = (scheme = 'http', more: Partial<ExchangeRequest> = {}) =>
    transport.exchange('app-write', post(`${scheme}://${NAME}:${port}`, more));
  return { proxy, proxies, exchange };
}

async function openService(answer = (socket: Socket) => void socket.write(http(200, '{}'))) {
  const service = await startRaw(answer);
  return { service, port: Number(new URL(service.origin()).port) };
}

/** A service by TLS that answers every request. */
async function openSecure(
  names: string,
  answer = (outgoing: ServerResponse) => void outgoing.end('{}'),
): Promise<{ port: number; certificate: Certificate }> {
  const certificate = await (await authority).issue('service', { names });
  const server = createSecureServer(certificate, (_, outgoing) => answer(outgoing));
  const port = await listen(server);
  closeLater({ close: () => closeServer(server) });
  return { port, certificate };
}

describe('By way of a forward proxy', () => {
  it('a write to http:// goes through a tunnel, and the proxy sees only the target', async () => {
    const { service, port } = await openService();
    const { proxy, exchange } = await open(port);
    expect(await exchange()).toMatchObject({ end: 'answered', answer: { status: 200 } });
    expect(proxy.targets).toEqual([`${NAME}:${port}`]);
    const [head = ''] = proxy.received[0]?.split('\r\n\r\n') ?? [];
    expect(head).toMatch(/^CONNECT /);
    expect(head).not.toMatch(/transfer|content-type/);
    expect(service.received[0]).toMatch(/^POST \/v1\/app\/token\/accounts\/transfer HTTP/);
    expect(service.received[0]).not.toMatch(/proxy-/i);
  });

  it.each([false, true])(
    'a write to https:// is encrypted to the service, also when the proxy is https:// (%s)',
    async (isSecure) => {
      const { port, certificate } = await openSecure(`DNS:${NAME},IP:127.0.0.1`);
      const { proxy, exchange } = await open(port, isSecure ? { secure: certificate } : {});
      expect(await exchange('https')).toMatchObject({ end: 'answered', answer: { status: 200 } });
      expect(proxy.targets).toEqual([`${NAME}:${port}`]);
      expect(proxy.received.join('')).not.toContain('amount');
    },
  );

  it('a certificate for another name is refused, and nothing was sent', async () => {
    const { port } = await openSecure('DNS:other.test');
    const { proxy, exchange } = await open(port);
    const cause = 'tls_wrong_host';
    expect(await exchange('https')).toMatchObject({ end: 'not_sent', cause });
    expect(proxy.targets).toHaveLength(1);
  });

  it('each write has a tunnel of its own while another hangs, and reuses an idle one', async () => {
    let hangs = true;
    const { service, port } = await openService((socket) => {
      if (hangs) hangs = false;
      else socket.write(http(200, '{}'));
    });
    const { proxy, exchange } = await open(port);
    const stop = new AbortController();
    const hanging = exchange('http', { signal: stop.signal });
    await expect.poll(() => service.received[0]).toContain('{"amount":1}');
    for (let n = 0; n < 3; n++) expect(await exchange()).toMatchObject({ end: 'answered' });
    expect(proxy.targets).toHaveLength(2);
    stop.abort();
    expect(await hanging).toMatchObject({ end: 'broken', cause: 'aborted' });
  });

  it('a write that is cut after its bytes left is unknown, as without a proxy', async () => {
    const { port } = await openService((socket) => void socket.destroy());
    const { exchange } = await open(port);
    expect(await exchange()).toMatchObject({ end: 'broken', cause: 'reset' });
  });

  it('a write whose deadline passes resets its connection', async () => {
    const { port } = await openService(() => {});
    const { proxy, exchange } = await open(port);
    const deadlineAt = systemClock.now() + 200;
    expect(await exchange('http', { deadlineAt })).toMatchObject({
      end: 'broken',
      cause: 'timeout',
    });
    await expect.poll(() => proxy.errors).toEqual(['ECONNRESET']);
  });

  it.each([false, true])(
    'a write to https:// whose deadline passes resets it too, also by an https:// proxy (%s)',
    async (isSecure) => {
      const { port, certificate } = await openSecure(`DNS:${NAME},IP:127.0.0.1`, () => {});
      const { proxy, exchange } = await open(port, isSecure ? { secure: certificate } : {});
      const ended = await exchange('https', { deadlineAt: systemClock.now() + 600 });
      expect(ended).toMatchObject({ end: 'broken', cause: 'timeout' });
      await expect.poll(() => proxy.errors).toEqual(['ECONNRESET']);
    },
  );

  it.each([
    ['proxy_auth', answering('407 Proxy Authentication Required')],
    ['proxy_refused', answering('403 Forbidden')],
    ['proxy_refused', answering('302 Found')],
    ['proxy_target_unreachable', answering('503 Service Unavailable')],
    ['proxy_closed', (socket: Socket) => void socket.destroy()],
    ['proxy_closed', (socket: Socket) => void socket.resetAndDestroy()],
    ['proxy_closed', (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\n')],
    ['proxy_unreadable', (socket: Socket) => void socket.end('SSH-2.0-OpenSSH\r\n')],
    [
      'proxy_unreadable',
      (socket: Socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200'),
    ],
    ['proxy_unreadable', (socket: Socket) => void socket.write(`HTTP/1.1 200 ${'x'.repeat(1e5)}`)],
    ['proxy_timeout', () => {}],
  ])('a proxy that opens no tunnel is %s, and nothing was sent (%#)', async (cause, instead) => {
    const { service, port } = await openService();
    const { exchange } = await open(port, { instead });
    expect(await exchange()).toMatchObject({ end: 'not_sent', cause });
    expect(service.received).toEqual([]);
  });

  it.each([
    ['proxy_unreachable', 'http'],
    ['proxy_tls', 'https'],
  ])('a proxy that is not there or speaks no TLS is %s', async (cause, scheme) => {
    const { port } = await openService();
    const plain = await startRaw((socket) => void socket.end(http(400, '{}')), { eager: true });
    const at = scheme === 'https' ? new URL(plain.origin()).port : await freePort();
    const proxies = { http: `${scheme}://127.0.0.1:${at}` };
    const transport = transportWith({ proxies, connectTimeoutMs: 5_000 });
    const ended = await transport.exchange('app-write', post(`http://${NAME}:${port}`));
    expect(ended).toMatchObject({ end: 'not_sent', cause });
  });

  it('a deadline that passes before the tunnel is open proves that nothing was sent', async () => {
    const { port } = await openService();
    const { exchange } = await open(port, { instead: () => {} });
    const deadlineAt = systemClock.now() + 50;
    const ended = await exchange('http', { deadlineAt });
    expect(ended).toMatchObject({ end: 'not_sent', cause: 'deadline' });
  });

  it('what NO_PROXY names is reached directly', async () => {
    const { service, port } = await openService();
    const { proxy, proxies } = await open(port);
    const transport = transportWith({ proxies: { ...proxies, except: '127.0.0.1' } });
    await transport.exchange('polls', post(service.origin()));
    expect(service.received).toHaveLength(1);
    expect(proxy.targets).toEqual([]);
  });
});

describe('The client of the service behind a proxy with a login', () => {
  async function openClient(login: { user: string; password: string }) {
    const service = await startScripted(() => [200, { status: 200, data: { tx_log_no: 5 } }]);
    const port = Number(new URL(service.origin).port);
    const { proxy } = await open(port, { login });
    const url = new URL(proxy.url);
    Object.assign(url, { username: LOGIN.user, password: LOGIN.password });
    const origin = `http://${NAME}:${port}`;
    const settings = { proxies: { http: url.href } };
    const { upstream, logged } = await upstreamTo(origin, systemClock, { settings });
    const ended = await upstream.forward(give(systemClock.now()));
    return { service, proxy, ended, logged };
  }

  it('fetches its token and writes through tunnels, and the login is in no log', async () => {
    const { service, proxy, ended, logged } = await openClient(LOGIN);
    expect(ended.outcome).toMatchObject({ class: 'accepted' });
    expect(service.requests.map(({ headers }) => headers.authorization)).toEqual([
      expect.stringMatching(/^Basic /),
      'Bearer token-1',
    ]);
    expect(JSON.stringify(service.requests)).not.toMatch(/proxy-auth/i);
    expect(new Set(proxy.targets).size).toBe(1);
    expect(logged.text).not.toContain(LOGIN.password);
  });

  it('has no token when the login is wrong, and says so without it', async () => {
    const { service, ended, logged } = await openClient({ ...LOGIN, password: 'another' });
    expect(ended.outcome).toEqual({ class: 'not_sent', cause: 'no_client_token' });
    expect(logged.text).toContain('"reason":"proxy_auth: the forward proxy wants another login"');
    expect(logged.text).not.toMatch(/p@ss-word|p%40ss-word|bWU6cEBzcy13b3Jk/);
    expect(service.requests).toEqual([]);
  });
});
