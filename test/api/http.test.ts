/** The API over HTTP on loopback. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { manualClock } from '../harness/manual-clock.ts';
import { checkResponse } from './described.ts';
import { requestOf, startServer, useApi } from './rig.ts';

/** Long polls of the feed that wait now. */
const polls = { waiting: 0, started: () => {} };
const api = useApi((deps) => ({
  ...deps,
  monotonic: manualClock(),
  async nextEvent(signal, ms) {
    polls.waiting += 1;
    polls.started();
    await deps.nextEvent(signal, ms);
    polls.waiting -= 1;
  },
}));
let server: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  server = await startServer(api.api);
});
afterAll(() => server.close());

const call = async (
  method: string,
  path: string,
  options: Parameters<typeof requestOf>[1] = {},
) => {
  const key = await api.keyFor('admin');
  const response = await fetch(`${server.url}${path}`, requestOf(method, { key, ...options }));
  return checkResponse(api.api, method, path, response);
};

it('A watch is created, listed and deleted over HTTP', async () => {
  const body = { kind: 'contract', contract_id: '90071992547409930001' };
  const made = await call('POST', '/api/watches', { body });
  expect(made.body).toMatchObject({ ...body, addr: null });
  expect((await call('GET', '/api/watches')).body.data).toMatchObject([{ id: made.body.id }]);
  const ended = await call('DELETE', `/api/watches/${made.body.id}`);
  expect({ status: ended.status, lines: api.lines }).toEqual({ status: 204, lines: [] });
});

it('A body without content-length is read', async () => {
  const key = await api.keyFor('admin');
  const made = await fetch(`${server.url}/api/watches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: new Blob(['{"kind":"contract",', '"contract_id":"5"}']).stream(),
    duplex: 'half',
  } as RequestInit);
  expect((await checkResponse(api.api, 'POST', '/api/watches', made)).status).toBe(201);
});

it('A body above the limit is refused with and without content-length', async () => {
  const body = 'x'.repeat(1_100_000);
  const withLength = await call('POST', '/api/watches', { raw: body });
  expect(withLength.body.code).toBe('body_too_large');
  const stream = new Blob([body]).stream();
  const key = await api.keyFor('admin');
  const chunked = await fetch(`${server.url}/api/watches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: stream,
    duplex: 'half',
  } as RequestInit);
  const answer = await checkResponse(api.api, 'POST', '/api/watches', chunked);
  expect(answer.body.code).toBe('body_too_large');
});

it('A long poll ends when its client disconnects', async () => {
  const client = new AbortController();
  const key = await api.keyFor('read');
  const started = new Promise<void>((resolve) => {
    polls.started = resolve;
  });
  const poll = fetch(`${server.url}/api/events?wait=30`, {
    headers: { authorization: `Bearer ${key}` },
    signal: client.signal,
  });
  await started;
  client.abort();
  await expect(poll).rejects.toThrow();
  await expect.poll(() => polls.waiting).toBe(0);
});

it('The console is served beside the API', async () => {
  const page = await fetch(`${server.url}/`);
  expect(page.headers.get('content-type')).toContain('text/html');
  const missing = await fetch(`${server.url}/nothing/here`);
  expect(missing.headers.get('content-type')).toContain('application/problem+json');
  const wrong = await fetch(`${server.url}/`, { method: 'POST' });
  expect({ status: wrong.status, allow: wrong.headers.get('allow') }).toEqual({
    status: 405,
    allow: 'GET, HEAD',
  });
});

it('An address that floods a path without a key is refused late, and keys go on', async () => {
  const key = await api.keyFor('read');
  const read = () =>
    fetch(`${server.url}/api/watches`, { headers: { authorization: `Bearer ${key}` } });
  expect((await read()).status).toBe(200);
  const started = performance.now();
  const flood = Array.from({ length: 400 }, () => fetch(`${server.url}/healthz`));
  expect((await read()).status).toBe(200);
  const answers = await Promise.all(flood);
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(100);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(200);
  expect(performance.now() - started).toBeGreaterThan(1_000);
  const [one] = refused;
  expect(await one?.json()).toMatchObject({ code: 'too_many_requests' });
  expect(one?.headers.get('retry-after')).toMatch(/^\d+$/);
});
