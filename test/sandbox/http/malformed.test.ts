/** Malformed requests: every response has a documented shape and the service keeps running. */
import fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';
import { tryParseJson } from '../../../src/kernel/json.ts';
import { anyBytes, anyRequest, documented, exchanged } from '../../harness/nonsense.ts';
import { BASIC, useCaller } from '../client.ts';

const caller = useCaller();
let user: string;

beforeEach(async () => {
  user = String((await caller.login(1)).at('access_token'));
});

it('Every HTTP request gets a documented response', async () => {
  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ method, path, query, body, who, type }) => {
      const headers = new Headers();
      if (type) headers.set('content-type', type);
      const authorization = {
        client: `Bearer ${caller.client}`,
        user: `Bearer ${user}`,
        basic: BASIC,
        none: '',
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
    { numRuns: 200 },
  );
  expect((await caller.send('GET', '/v1/system/maintenance')).status).toBe(200);
});

it('Bytes that are not HTTP are refused and do not affect other requests', async () => {
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

it('A body of one mebibyte is read, one byte more is refused with 413', async () => {
  const send = (length: number) => {
    const json = ' '.repeat(length);
    return caller.send('POST', '/v1/app/token/accounts/transfer', { as: caller.client, json });
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

it('A path that changes when normalised is not found', async () => {
  const raw = (target: string) =>
    exchanged(
      caller.sandbox.port,
      Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    );
  const there = '/v1/system/maintenance';
  expect(await raw(there)).toContain('ACTIVE');
  expect(await raw(`http://other${there}`)).toContain('ACTIVE');
  for (const target of [
    `/v1/x/..${there.slice(3)}`,
    `/v1/%2e${there.slice(3)}`,
    there.replaceAll('/', '\\'),
    `/${there}`,
  ]) {
    const text = await raw(target);
    expect(text).not.toContain('ACTIVE');
    expect(text).toMatch(/"status":40[04]/);
  }
});
