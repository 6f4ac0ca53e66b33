/** Whatever is sent, the answer has a documented shape, and the service goes on. */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { tryParseJson } from '../../src/kernel/json.ts';
import { anyBytes, anyRequest, documented, exchanged } from '../harness/nonsense.ts';
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

test('Any request of HTTP gets a documented answer', async () => {
  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ method, path, query, body, who, type }) => {
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
  await fc.assert(
    fc.asyncProperty(anyBytes, async (each) => {
      const text = await exchanged(caller.sandbox.port, each);
      if (text === '') return;
      expect(text).toMatch(/^HTTP\/1\.1 /);
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
    exchanged(
      caller.sandbox.port,
      Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    );
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
