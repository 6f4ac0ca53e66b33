import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { expect, it } from 'vitest';
import { SETTINGS } from '../upstream/rig.ts';
import { BODY, GIVE, READ, received, SUCCESS, setUpGateway } from './rig.ts';

const LIMIT = 4_096;
const { rig, sql } = await setUpGateway({ bodyBytesMax: LIMIT });

const LARGE = Buffer.alloc(SETTINGS.bodyBytesMax * 3, 'a');

it.each(['/v1/chain/erc721/1/tokens', '/v1/oauth/authorize?x=1'])(
  'A large answer to a read is streamed whole and is not an observation: %s',
  async (path) => {
    const headers: [string, string][] = [
      ['content-type', 'a/b'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-internal', 'no'],
    ];
    rig.answer(() => ({ status: 206, headers, body: LARGE }));
    const response = await rig.call('GET', path);
    expect(response.status).toBe(206);
    expect(response.bytes.equals(LARGE)).toBe(true);
    const { 'content-type': type, 'set-cookie': cookies } = response.headers;
    expect([type, cookies]).toEqual(['a/b', ['a=1', 'b=2']]);
    expect(response.headers['x-internal']).toBeUndefined();
    expect(rig.reads).toEqual([]);
  },
);

it('A large answer to a read does not block the gateway when its caller disconnects', async () => {
  rig.answer(() => ({ status: 200, body: LARGE }));
  const socket = rig.rawRequest('accept: */*', { method: 'GET', path: READ });
  await received(socket, 'HTTP/1.1 200');
  socket.destroy();
  rig.answer(() => SUCCESS);
  expect(await rig.give()).toMatchObject({ status: 200 });
});

it('A large answer to a write is not read to its end, so the outcome is unknown', async () => {
  rig.answer(() => ({ status: 200, body: LARGE }));
  expect(await rig.give()).toMatchObject({ status: 504, json: { code: 'outcome_unknown' } });
});

const expecting = (length = BODY.length) => `content-length: ${length}\r\nexpect: 100-continue`;

it('A caller that waits for 100 Continue gets it after its key is verified', async () => {
  const socket = rig.rawRequest(expecting());
  expect(await received(socket, '\r\n\r\n')).toMatch(/^HTTP\/1\.1 100 /);
  socket.write(BODY);
  expect(await received(socket, 'tx_log_no')).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
  expect(rig.requests[0]?.body.toString()).toBe(BODY);
  expect(rig.requests[0]?.headers.expect).toBeUndefined();
});

it.each([
  ['without a key', false, expecting(), 406],
  ['with a body that is too large', true, expecting(5_000), 413],
  ['with an invalid idempotency key', true, `${expecting()}\r\nidempotency-key: `, 400],
])(
  'A caller that waits for 100 Continue %s is refused before its body',
  async (_what, key, headers, status) => {
    const response = await received(rig.rawRequest(headers, { key }));
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(response).not.toContain('100 Continue');
    expect(rig.requests).toEqual([]);
  },
);

it('A body of exactly the limit is accepted', async () => {
  const body = Buffer.alloc(LIMIT, 0x20);
  await rig.give({}, body);
  expect(rig.requests[0]?.body).toEqual(body);
});

it.each([
  ['declared', 1],
  ['declared', LIMIT * 6],
  ['chunked', 1],
  ['chunked', LIMIT * 6],
])(
  'A body that is %s and %i bytes too large is refused, and the connection stays open',
  async (how, by) => {
    const agent = new Agent({ connections: 1, pipelining: 1 });
    const pieces = function* () {
      for (let left = LIMIT + by; left > 0; left -= 1_000)
        yield Buffer.alloc(Math.min(left, 1_000));
    };
    const body = how === 'declared' ? Buffer.alloc(LIMIT + by) : Readable.from(pieces());
    const options = { dispatcher: agent, headers: { authorization: `Bearer ${rig.secret}` } };
    const first = await request(`${rig.url}${GIVE}`, { ...options, method: 'POST', body });
    const json = await first.body.json();
    expect([first.statusCode, json]).toMatchObject([413, { code: 'body_too_large', status: 413 }]);
    expect(first.headers.connection).toBe('keep-alive');
    const next = await request(`${rig.url}${READ}`, options);
    await next.body.dump();
    expect(next.statusCode).toBe(200);
    await agent.close();
    expect(rig.requests.map(({ method }) => method)).toEqual(['GET']);
  },
);

it.each([
  ['that is declared far beyond the limit', true, 'content-length: 999999999', '', 413],
  ['in chunks, without a key,', false, 'transfer-encoding: chunked', '5\r\nabcde\r\n', 406],
])(
  'A body %s is refused unread, and the connection is closed',
  async (_what, key, head, sent, status) => {
    const socket = rig.rawRequest(head, { key });
    socket.write(sent);
    const response = await received(socket);
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(response).toMatch(/connection: close/i);
  },
);

it('A short body of a request without a key is dropped, and the connection stays open', async () => {
  const socket = rig.rawRequest('content-length: 5', { key: false });
  expect(await received(socket, '}}')).toMatch(/^HTTP\/1\.1 406 /);
  socket.write(`abcdePOST ${GIVE} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde`);
  expect(await received(socket, '}}')).toMatch(/^HTTP\/1\.1 406 /);
  socket.destroy();
});

it('A body that ends early is neither recorded nor sent', async () => {
  const count = async () => (await sql`select from tallyhook.operations`).count;
  const before = await count();
  const socket = rig.rawRequest('content-length: 99');
  socket.end('{"am');
  await received(socket).catch(() => '');
  expect(await rig.give()).toMatchObject({ status: 200 });
  expect([await count(), rig.requests.length]).toEqual([before + 1, 1]);
});

it('A body in chunks is sent whole, without the headers of the connection', async () => {
  const pieces = ['{"toAddr":"', 'x'.repeat(42), '","amount":1,', '"reasonType":"r"}'];
  const connection = 'te: trailers\r\nkeep-alive: 300\r\nconnection: te';
  const socket = rig.rawRequest(`${connection}\r\ntransfer-encoding: chunked`);
  for (const piece of [...pieces, '']) socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
  expect(await received(socket, 'tx_log_no')).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
  expect(rig.requests[0]?.body.toString()).toBe(pieces.join(''));
  const { te, 'keep-alive': kept, 'transfer-encoding': sent } = rig.requests[0]?.headers ?? {};
  expect([te, kept, sent]).toEqual([undefined, undefined, undefined]);
});

it('A body with an address of any length is sent, because the service validates it', async () => {
  const toAddr = randomBytes(1_500).toString('hex');
  const body = JSON.stringify({ toAddr, amount: 1, reasonType: 'r' });
  expect(await rig.give({}, body)).toMatchObject({ status: 200 });
  expect(rig.requests[0]?.body.toString()).toBe(body);
});
