/** Webhooks behind a forward proxy: judged addresses all the same, and faults of the proxy. */
import { readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { type AttemptClient, makeAttemptClient } from '../../src/webhooks/delivery/http/attempt.ts';
import type { ProxyUse } from '../../src/webhooks/delivery/http/connector.ts';
import { parseRanges } from '../../src/webhooks/endpoints/address.ts';
import { makeAuthority, trust } from '../harness/certificates.ts';
import { useFolder } from '../harness/folder.ts';
import {
  answering,
  type ForwardProxyOptions,
  startForwardProxy,
} from '../harness/forward-proxy.ts';
import { closeServer, freePort, listen } from '../harness/listen.ts';
import { startReceiver } from '../harness/receiver.ts';

const LIMITS = { deadlineMs: 2_000, bodyMs: 500, readBytesMax: 65_536, keepBytesMax: 1_000 };
const ADDRESSES: Record<string, string[]> = {
  'receiver.test': ['127.0.0.1'],
  'several.test': ['127.0.0.9', '127.0.0.1'],
  'private.test': ['10.0.0.1'],
};
const folder = useFolder();
const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

/** A client whose receivers resolve to loopback, which is allowed. */
async function open(options: ForwardProxyOptions = {}, more: ProxyUse = {}) {
  const proxy = await startForwardProxy(options);
  const client = makeAttemptClient(
    LIMITS,
    parseRanges(['127.0.0.0/8']),
    { http: proxy.url, https: proxy.url, ...more },
    async (name) => (ADDRESSES[name] ?? []).map((address) => ({ address, family: 4 })),
  );
  const receiver = await startReceiver();
  opened.push(proxy, receiver, client);
  const { port } = new URL(receiver.url);
  return { proxy, receiver, client, port };
}

function post(client: AttemptClient, url: string) {
  return client.post({ url: new URL(url), headers: {}, body: Buffer.from('{}') });
}

describe('A webhook by way of a forward proxy', () => {
  it('goes to the address that was judged here, with the name in Host only', async () => {
    const { proxy, receiver, client, port } = await open();
    const url = `http://receiver.test:${port}/hook`;
    expect(await post(client, url)).toMatchObject({ status: 200, error: null });
    expect(proxy.targets).toEqual([`127.0.0.1:${port}`]);
    expect((await receiver.next()).headers.host).toBe(`receiver.test:${port}`);
    expect(proxy.received[0]).not.toMatch(/^proxy-authorization/im);
  });

  it('has the name in SNI, and its certificate is checked for that name', async () => {
    const authority = await makeAuthority(folder);
    await trust(authority);
    const certificate = await authority.issue('receiver', { names: 'DNS:receiver.test' });
    const names: unknown[] = [];
    const server = createSecureServer(certificate, (_, outgoing) => outgoing.end('ok'));
    server.on('secureConnection', (socket) => names.push(socket.servername));
    const port = await listen(server);
    opened.push({ close: () => closeServer(server) });
    const { proxy, client } = await open();
    expect(await post(client, `https://receiver.test:${port}/`)).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual([`127.0.0.1:${port}`]);
    expect(names).toEqual(['receiver.test']);
    expect(await post(client, `https://several.test:${port}/`)).toMatchObject({
      status: null,
      error: 'tls_wrong_host',
    });
  });

  it('has the client certificate of its endpoint at the receiver, and not at the proxy', async () => {
    const authority = await makeAuthority(folder);
    const ca = readFileSync(authority.certFile, 'utf8');
    const own = await authority.issue('client');
    const options = await authority.issue('receiver', { names: 'DNS:receiver.test' });
    const clients: unknown[] = [];
    const server = createSecureServer(
      { ...options, ca, requestCert: true, rejectUnauthorized: true },
      (incoming, outgoing) => {
        clients.push((incoming.socket as TLSSocket).getPeerCertificate().subject.CN);
        outgoing.end('ok');
      },
    );
    const url = new URL(`https://receiver.test:${await listen(server)}/`);
    opened.push({ close: () => closeServer(server) });
    const { proxy, client } = await open();
    const tls = { certificate: own.cert, privateKey: own.key, ca };
    const request = { url, headers: {}, body: Buffer.from('{}'), tls };
    expect(await client.post(request)).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual([`127.0.0.1:${url.port}`]);
    expect(clients).toEqual(['client']);
  });

  it('A webhook is not sent to an address that is refused, and the proxy is not asked', async () => {
    const { proxy, client } = await open();
    for (const url of ['http://private.test/', 'http://10.0.0.1/', 'https://[fd00::1]/'])
      expect(await post(client, url)).toMatchObject({ status: null, error: 'blocked_address' });
    expect(proxy.targets).toEqual([]);
  });

  it('tries the next address when the proxy does not reach the first', async () => {
    const { proxy, client, port } = await open();
    expect(await post(client, `http://several.test:${port}/`)).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual([`127.0.0.9:${port}`, `127.0.0.1:${port}`]);
  });

  it('goes to the name only if the proxy is to resolve names; literal addresses are judged', async () => {
    const target = 'unknown.test:80';
    const ports: Record<string, number> = {};
    const { proxy, receiver, client, port } = await open({ ports }, { resolvesNames: true });
    ports[target] = Number(port);
    expect(await post(client, 'http://unknown.test/')).toMatchObject({ status: 200 });
    expect(proxy.targets).toEqual([target]);
    expect((await receiver.next()).headers.host).toBe('unknown.test');
    expect(await post(client, 'http://10.0.0.1/')).toMatchObject({ error: 'blocked_address' });
  });

  it('reaches loopback and what NO_PROXY names directly, and judges that too', async () => {
    const { proxy, client, port, receiver } = await open(
      {},
      { except: 'receiver.test,10.0.0.0/8' },
    );
    expect(await post(client, `http://receiver.test:${port}/`)).toMatchObject({ status: 200 });
    expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
    expect(await post(client, 'http://10.0.0.1/')).toMatchObject({ error: 'blocked_address' });
    expect(proxy.targets).toEqual([]);
  });

  it('reuses its tunnel for the same receiver', async () => {
    const { proxy, client, port } = await open();
    for (let n = 0; n < 6; n++) await post(client, `http://receiver.test:${port}/`);
    expect(proxy.targets.length).toBeLessThan(3);
  });

  it.each([
    ['proxy_auth', answering('407 Proxy Authentication Required')],
    ['proxy_refused', answering('403 Forbidden')],
    ['proxy_target_unreachable', answering('502 Bad Gateway')],
    ['proxy_closed', (socket: Socket) => void socket.destroy()],
    ['proxy_unreadable', (socket: Socket) => void socket.end('220 smtp\r\n')],
  ])('fails with %s, without a status', async (error, instead) => {
    const { receiver, client, port } = await open({ instead });
    const failed = await post(client, `http://receiver.test:${port}/`);
    expect(failed).toMatchObject({ status: null, error, body: null });
    expect(receiver.requests).toEqual([]);
  });

  it('whose proxy hangs ends by its own deadline', async () => {
    const { client, port } = await open({ instead: () => {} });
    expect(await post(client, `http://receiver.test:${port}/`)).toMatchObject({
      error: expect.stringMatching(/^(timeout|proxy_timeout)$/),
    });
  });

  it('whose proxy is not there fails with proxy_unreachable, which names no login', async () => {
    const closed = `http://me:hush@127.0.0.1:${await freePort()}`;
    const { client, port } = await open({}, { http: closed });
    const failed = await post(client, `http://receiver.test:${port}/`);
    expect(failed.error).toBe('proxy_unreachable');
    expect(JSON.stringify(failed)).not.toContain('hush');
  });
});
