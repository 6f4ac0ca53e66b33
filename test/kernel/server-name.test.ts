/** Names of hosts in TLS handshakes, and that both clients send them so. */
import dns from 'node:dns';
import { createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { serverNameOf } from '../../src/kernel/http/server-name.ts';
import { makeAttemptClient } from '../../src/webhooks/delivery/http/attempt.ts';
import { parseRanges } from '../../src/webhooks/endpoints/address.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { listen } from '../harness/listen.ts';
import { post, transportWith } from '../upstream/rig.ts';
import { closeAll, closeLater } from '../upstream/service.ts';

afterEach(closeAll);

it.each([
  ['service.example', 'service.example'],
  ['service.example.', 'service.example'],
  ['localhost', 'localhost'],
  ['xn--bcher-kva.example.', 'xn--bcher-kva.example'],
  ['127.0.0.1', ''],
  ['[::1]', ''],
  ['::1', ''],
  ['1.example', '1.example'],
])('The server name of the host %s is %j', (hostname, name) => {
  expect(serverNameOf(hostname)).toBe(name);
});

/** The names in the first handshake that a client begins with the host. */
async function namesSentTo(host: string, send: (origin: string) => unknown): Promise<string[]> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (hello) => {
      resolve(hello);
      socket.destroy();
    });
  });
  const port = await listen(server);
  closeLater({ close: () => new Promise((done) => server.close(() => done())) });
  await send(`https://${host}:${port}`);
  return namesIn(await promise);
}

/** The extension server_name of a ClientHello: type 0, its length, a list of names of type 0. */
function namesIn(hello: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at + 9 < hello.length; at++) {
    const [type, length, list, name] = [0, 2, 4, 7].map((n) => hello.readUInt16BE(at + n));
    const isName = type === 0 && hello[at + 6] === 0 && list === (length ?? 0) - 2;
    if (isName && name === (list ?? 0) - 3)
      found.push(hello.toString('latin1', at + 9, at + 9 + name));
  }
  return found;
}

const HOSTS: [string, string[]][] = [
  ['localhost', ['localhost']],
  ['localhost.', ['localhost']],
  ['127.0.0.1', []],
];

it.each(HOSTS)(
  'A request to the service at https://%s names %j in the handshake',
  async (host, names) => {
    // No name that ends with a dot is in the hosts file.
    const { lookup } = dns;
    const withoutDot = (name: string, ...rest: unknown[]) =>
      Reflect.apply(lookup, dns, [name.replace(/\.$/, ''), ...rest]);
    dns.lookup = Object.assign(withoutDot, { __promisify__: lookup.__promisify__ });
    try {
      const transport = transportWith({}, systemClock);
      for (const cls of ['app-write', 'polls'] as const)
        expect(await namesSentTo(host, (origin) => transport.exchange(cls, post(origin)))).toEqual(
          names,
        );
    } finally {
      dns.lookup = lookup;
    }
  },
);

it.each(HOSTS)('A webhook to https://%s names %j in the handshake', async (host, names) => {
  const client = makeAttemptClient(webhookDefaults.send, parseRanges(['127.0.0.0/8']));
  closeLater(client);
  const send = (origin: string) =>
    client.post({ url: new URL(origin), headers: {}, body: Buffer.from('{}') });
  expect(await namesSentTo(host, send)).toEqual(names);
});
