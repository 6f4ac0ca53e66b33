/**
 * A daemon before a service whose answers hold what Postgres cannot store as it is: NUL, half of a
 * surrogate pair, numbers of any size and form. What is data is stored, and nothing that holds it
 * stays unobserved.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

type Rewrite = (answer: string) => string;

const world = await useWorld();
let daemon: DaemonProcess;
let app: App;
/** What is changed in the answers to paths that contain the text. */
const rewrites = new Map<string, Rewrite>();
/** The paths of the requests to the service. */
const asked: string[] = [];
const service = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { host: _, ...headers } = incoming.headers;
  const url = `${world.sandbox.url}${incoming.url}`;
  const method = incoming.method as 'GET';
  asked.push(String(incoming.url));
  if (incoming.url === '/hook') return void outgoing.writeHead(500).end('a\0b\u{ffff}\ufffd');
  const answer = await request(url, { method, headers, body: Buffer.concat(chunks) });
  let text = await answer.body.text();
  for (const [part, rewrite] of rewrites)
    if (`${method} ${incoming.url}`.includes(part)) text = rewrite(text);
  const { 'content-length': __, 'transfer-encoding': ___, ...kept } = answer.headers;
  outgoing.writeHead(answer.statusCode, kept as Record<string, string>).end(text);
});

beforeAll(async () => {
  const url = `http://127.0.0.1:${await listen(service)}`;
  daemon = await spawnDaemon(environmentOf(world.database.url, url), QUICK);
  app = makeApp(() => daemon.url);
});
afterAll(async () => {
  await daemon?.kill();
  await closeServer(service);
});

/** The member of a JSON object, replaced as text. */
const member = (name: string, to: string) => (text: string) =>
  text.replaceAll(new RegExp(`("${name}":\\s*)("(?:[^"\\\\]|\\\\.)*"|[^,}\\]]+)`, 'g'), `$1${to}`);
const found = <T>(check: () => Promise<T | undefined>) => until(check, { deadlineMs: 30_000 });

describe('The balance of a wallet', () => {
  it.each<[string, string, bigint]>([
    ['a number of 401 digits', '1e400', 10n ** 400n],
    ['an exponent in upper case with a sign', '12E+25', 12n * 10n ** 25n],
    ['a fraction that is whole', '1.50e20', 15n * 10n ** 19n],
    ['many digits with a fraction of zeros', '123456789012345678901.000', 123456789012345678901n],
    ['a negative one', '-1e30', -(10n ** 30n)],
    ['a number of 1000 digits', '9'.repeat(1_000), BigInt('9'.repeat(1_000))],
  ])('That is %s is observed exactly', async (_, written, balance) => {
    const addr = world.ben;
    rewrites.set(addr, member('amt_token', written));
    await app.call('POST', '/api/watches', [{ kind: 'wallet', addr }]);
    const shown = async () => {
      const { json } = await app.call('GET', `/api/wallets/${addr}`);
      return json?.observed_balance === balance.toString() || undefined;
    };
    expect(await found(shown), (await app.call('GET', `/api/wallets/${addr}`)).text).toBe(true);
    rewrites.clear();
  });
});

describe('A token', () => {
  it.each([
    ['NUL', 'a\\u0000b', 'a\ufffdb'],
    ['half of a surrogate pair', 'a\\uD83Db', 'a\ufffdb'],
    ['the other half', 'a\\uDE00b', 'a\ufffdb'],
    ['a whole pair', 'a\\uD83D\\uDE00b', 'a😀b'],
    ['a backslash before what looks like NUL', 'a\\\\u0000b', 'a\\u0000b'],
  ])('Whose texts hold %s is observed', async (_, written, read) => {
    rewrites.set('GET /v1/chain/erc721/1/tokens/', (text) =>
      ['token_uri', 'token_metadata', 'token_extradata', 'token_owned_at'].reduce(
        (so, name) => member(name, `"${written}"`)(so),
        text,
      ),
    );
    const id = 900_000 + written.length * 100 + (written.charCodeAt(5) % 100);
    expect((await app.mint(world.ada, id)).status).toBe(200);
    await app.call('POST', '/api/watches', [
      { kind: 'token', contract_id: '1', token_id: String(id) },
    ]);
    const shown = async () => {
      const { json } = await app.call('GET', `/api/tokens/1/${id}`);
      return (json?.uri === read && json?.extra_data === read) || undefined;
    };
    expect(await found(shown), (await app.call('GET', `/api/tokens/1/${id}`)).text).toBe(true);
    rewrites.clear();
  });
});

describe('Other answers', () => {
  it('A refusal whose message holds NUL is recorded, and the app gets its bytes', async () => {
    const message = 'no\\u0000money\\uD800';
    rewrites.set('/give', () => `{"status":"406","error":{"code":"398","message":"${message}"}}`);
    const refused = await app.give(world.ada, 10);
    rewrites.clear();
    expect(refused.text).toContain(message);
    const id = refused.headers['tallyhook-operation'];
    const { json } = await app.call('GET', `/api/operations/${id}`);
    expect(json.error.message).toBe('no\ufffdmoney\ufffd');
  });

  it('A maintenance whose texts hold NUL is announced', async () => {
    world.sandbox.control.maintenance({ state: 'on' });
    rewrites.set('maintenance', member('message', '"b\\u0000ack \\uDC00soon"'));
    const event = await app.until((e) => e.type === 'service.maintenance_started');
    // An event is JSON text, which can hold both.
    expect(event.data.message).toBe('b\u0000ack \udc00soon');
    rewrites.clear();
    world.sandbox.control.maintenance({ state: 'off' });
    await app.until((e) => e.type === 'service.maintenance_ended');
  });

  it('A status beyond every size makes an answer unreadable, and the wallet is observed after it', async () => {
    // Of the wallet, not of the envelope.
    rewrites.set(world.ben, (text) =>
      text.replace(/("status":\s*)1\b/, (_, name) => `${name}2199023255552`),
    );
    asked.length = 0;
    const polls = () => asked.filter((url) => url.includes(world.ben)).length;
    expect(await found(async () => polls() > 3 || undefined)).toBe(true);
    rewrites.clear();
    const { text } = await app.call('GET', '/api/quarantine');
    expect(text).not.toContain(world.ben);
    const fresh = Date.now();
    const observed = async () => {
      const { json } = await app.call('GET', `/api/wallets/${world.ben}`);
      return Date.parse(json?.observed_at) > fresh || undefined;
    };
    expect(await found(observed)).toBe(true);
  });

  it("A receiver's answer that holds NUL is stored with its attempt", async () => {
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/hook`;
    const made = await app.call('POST', '/api/endpoints', { url, event_types: ['*'] });
    expect(made.status, made.text).toBe(201);
    await app.call('POST', `/api/endpoints/${made.json.id}/test`);
    const stored = async () => {
      const { json } = await app.call('GET', `/api/deliveries?endpoint_id=${made.json.id}`);
      const id = json.data[0]?.id;
      if (id === undefined) return undefined;
      const attempts = await app.call('GET', `/api/deliveries/${id}/attempts`);
      return attempts.json.data[0]?.response_body ?? undefined;
    };
    expect(await found(stored)).toMatch(/^a\ufffdb/);
    await app.call('DELETE', `/api/endpoints/${made.json.id}`);
  });

  it('Nothing was quarantined', async () => {
    expect((await app.call('GET', '/api/quarantine')).json.data).toEqual([]);
    // Of what Postgres cannot store: text, JSON, numbers.
    expect(daemon.output()).not.toMatch(/22021|22P05|22003/);
  });
});
