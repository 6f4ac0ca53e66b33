/** Whatever is sent, the answer has a documented shape, and the service goes on. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { tryParseJson } from '../../src/kernel/json.ts';
import { ROUTES } from '../../src/sandbox/routes.ts';
import { BASIC, type Caller, startCaller, stopAll } from './client.ts';

let caller: Caller;
let client: string;
let user: string;

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(async () => {
  caller.sandbox.control.reset({});
  client = await caller.clientToken();
  user = String((await caller.login(1)).at('access_token'));
});

const complaint = z.strictObject({
  message: z.string(),
  field: z.string(),
  validation: z.string(),
});
const nftError = z.strictObject({ status: z.int(), error: z.array(complaint).min(1) });
const accountError = z.strictObject({
  status: z.string(),
  error: z.strictObject({ code: z.string(), message: z.string() }),
});
const oauthError = z.strictObject({
  status: z.int(),
  error: z.strictObject({
    code: z.int(),
    message: z.string(),
    detail: z.string(),
    data: z.null(),
    errors: z.strictObject({}),
  }),
});
const success = z.looseObject({ status: z.literal(200), data: z.looseObject({}) });
const record = z.looseObject({ access_token: z.string() });
const documented = z.union([nftError, accountError, oauthError, success, record]);

const noise = fc.oneof(
  fc.string(),
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.constant('['.repeat(50_000)),
  fc.constant('9'.repeat(5_000)),
  fc.bigInt().map(String),
  fc.constantFrom('__proto__', 'constructor', '%', '%00', '\u0000', '-0', '1e400', 'null'),
);
const field = fc.constantFrom(
  ...'toAddr fromAddr tokenId tokenURI metaData extraData amount feeAmount reasonType'.split(' '),
  ...'grant_type code redirect_uri refresh_token response_type client_id member_no'.split(' '),
);
const fields = fc.dictionary(field, fc.oneof(noise, fc.constant(`0x${'a'.repeat(40)}`)));
const body = fc.oneof(
  noise,
  fields.map((given) => new URLSearchParams(given).toString()),
  fc.dictionary(field, fc.jsonValue()).map((given) => JSON.stringify(given)),
);
const segment = noise.map(encodeURIComponentSafely);
const path = fc.oneof(
  fc
    .tuple(fc.constantFrom(...ROUTES), segment)
    .map(([route, value]) => route.path.replace(/:\w+/g, value || 'x')),
  fc.array(segment, { maxLength: 5 }).map((parts) => `/v1/${parts.join('/')}`),
);
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'),
  path,
  query: fc.option(
    fields.map((given) => `?${new URLSearchParams(given)}`),
    { nil: '' },
  ),
  body,
  who: fc.constantFrom('client', 'user', 'basic', 'nobody', 'noise'),
  type: fc.option(fc.constantFrom('application/json', 'text/plain', 'multipart/form-data')),
});

function encodeURIComponentSafely(text: string): string {
  return encodeURIComponent(text.toWellFormed()).slice(0, 2_000);
}

test('Any request of HTTP gets a documented answer', async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, body, who, type }) => {
      const headers = new Headers();
      if (type) headers.set('content-type', type);
      const authorization = {
        client: `Bearer ${client}`,
        user: `Bearer ${user}`,
        basic: BASIC,
        nobody: '',
        noise: 'Bearer ~~~',
      }[who];
      if (authorization) headers.set('authorization', authorization);
      const init = { method, headers, redirect: 'manual', ...(method === 'GET' ? {} : { body }) };
      const response = await fetch(caller.sandbox.url + path + query, init as RequestInit);
      const text = await response.text();
      if (response.headers.get('content-type')?.startsWith('text/html')) return;
      if (response.status === 302) return;
      expect(documented.safeParse(tryParseJson(text)).error).toBeUndefined();
      expect(text).not.toMatch(/\.ts:\d|node_modules|at \w+ \(/);
    }),
    { numRuns: 400 },
  );
  expect((await caller.send('GET', '/v1/system/maintenance')).status).toBe(200);
});

test('Bytes that are no HTTP are refused, and nobody else notices', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 500 }).map((each) => Buffer.from(each)),
    fc
      .tuple(fc.constantFrom('GET', 'TRACE', 'CONNECT', 'get', 'HEAD'), fc.string())
      .map(([method, target]) => Buffer.from(`${method} ${target} HTTP/1.1\r\n\r\n`)),
    fc.string().map((text) => Buffer.from(`GET / HTTP/1.1\r\nHost: ${text}\r\n\r\n`)),
  );
  await fc.assert(
    fc.asyncProperty(bytes, async (each) => {
      const text = await exchanged(each);
      if (!text.startsWith('HTTP/1.1')) return expect(text).toBe('');
      const json = text.slice(text.indexOf('\r\n\r\n') + 4);
      if (json !== '') expect(documented.safeParse(tryParseJson(json)).error).toBeUndefined();
    }),
    { numRuns: 150 },
  );
  expect((await caller.send('GET', '/v1/system/maintenance')).status).toBe(200);
});

test('A body of more than a mebibyte is refused with 413, one of just that is read', async () => {
  const send = (length: number) => {
    const json = ' '.repeat(length);
    return caller.send('POST', '/v1/app/token/accounts/transfer', { as: client, json });
  };
  expect((await send(2 ** 20)).at('error.code')).toBe('997');
  expect(await send(2 ** 20 + 1)).toMatchObject({ status: 413, body: { status: '413' } });
  expect(caller.sandbox.control.requests().at(-1)).toMatchObject({
    endpoint: 'transfer',
    status: 413,
    body: '',
    applied: false,
  });
});

test('A path that means something else when normalised is not there', async () => {
  const raw = (target: string) =>
    exchanged(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`));
  const there = '/v1/system/maintenance';
  expect(await raw(there)).toContain('ACTIVE');
  for (const target of [
    `/v1/x/..${there.slice(3)}`,
    `/v1/%2e${there.slice(3)}`,
    there.replaceAll('/', '\\'),
    `http://other${there}`,
    `/${there}`,
  ]) {
    const text = await raw(target);
    expect(text).not.toContain('ACTIVE');
    expect(text).toMatch(/"status":40[04]/);
  }
});

/** What comes back for raw bytes, until the connection is closed. */
function exchanged(bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(caller.sandbox.port, '127.0.0.1');
    let text = '';
    socket.setTimeout(2_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.end(bytes);
  });
}
