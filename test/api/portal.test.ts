/** Portal links: a subscriber sees the endpoints of one owner, and nothing else. */
import { beforeAll, describe, expect, it } from 'vitest';
import { openApi, useApi } from './rig.ts';

const api = useApi();
let key: string;

/** A link for an owner, and the key in it. */
async function link(owner: string, more: object = {}) {
  const { status, body } = await api.call('POST', '/api/portal-links', {
    body: { owner, ...more },
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return { id: String(body.id), key: String(body.url).split('#')[1] ?? '', body };
}

async function endpointOf(by: string): Promise<string> {
  const body = { url: 'https://receiver.example/hook' };
  const { status, body: made } = await api.call('POST', '/api/endpoints', { key: by, body });
  expect(status).toBe(201);
  return String(made.id);
}

beforeAll(async () => {
  key = (await link('subscriber')).key;
});

describe('A portal link', () => {
  it('names its owner and end, and has its key where no server reads it', async () => {
    const { body } = await link('some subscriber');
    expect(body.url).toMatch(/^http:\/\/[^#]+\/portal#thk_/);
    expect(body.owner).toBe('some subscriber');
    const days = (Date.parse(String(body.expires_at)) - api.clock.now()) / 86_400_000;
    expect(Math.round(days)).toBe(7);
  });

  it('begins with the public address of the console, if that is set', async () => {
    const consoleUrl = 'https://books.example/tallyhook';
    const public_ = await openApi(api.database.db, (deps) => ({ ...deps, consoleUrl }));
    const body = { owner: 'some subscriber' };
    const { body: made } = await public_.call('POST', '/api/portal-links', { body });
    expect(made.url).toMatch(/^https:\/\/books\.example\/tallyhook\/portal#thk_/);
  });

  it('may last at most 366 days', async () => {
    const expires_at = new Date(api.clock.now() + 367 * 86_400_000).toISOString();
    const { status } = await api.call('POST', '/api/portal-links', {
      body: { owner: 'x', expires_at },
    });
    expect(status).toBe(400);
  });

  it('is made by administrators only, and in the audit trail without its key', async () => {
    const manage = await api.keyFor('manage');
    const made = await api.call('POST', '/api/portal-links', {
      key: manage,
      body: { owner: 'x' },
    });
    expect(made.status).toBe(403);
    const { key: secret } = await link('audited subscriber');
    const { body } = await api.call('GET', '/api/audit?limit=5');
    expect(JSON.stringify(body.data)).toContain('audited subscriber');
    expect(JSON.stringify(body.data)).not.toContain(secret);
  });

  it('ends when its key is revoked', async () => {
    const made = await link('ended subscriber');
    expect((await api.call('GET', '/api/endpoints', { key: made.key })).status).toBe(200);
    await api.call('DELETE', `/api/keys/${made.id}`);
    expect((await api.call('GET', '/api/endpoints', { key: made.key })).status).toBe(401);
  });
});

describe('A subscriber', () => {
  it('A subscriber sees and changes the endpoints of its owner', async () => {
    const id = await endpointOf(key);
    const since = new Date(api.clock.now() - 60_000).toISOString();
    const { body } = await api.call('GET', '/api/endpoints', { key });
    expect(body.data.map((row) => row.id)).toEqual([id]);
    const calls: [string, string, object?][] = [
      ['GET', `/api/endpoints/${id}`],
      ['GET', `/api/endpoints/${id}/activity?range=hour`],
      ['PATCH', `/api/endpoints/${id}`, { description: 'mine' }],
      ['POST', `/api/endpoints/${id}/test`],
      ['POST', `/api/endpoints/${id}/filter/test`, { type: 'wallet.observed', filter: {} }],
      ['GET', `/api/deliveries?endpoint_id=${id}`],
      ['GET', `/api/replays?endpoint_id=${id}`],
      ['GET', '/api/event-types'],
      ['POST', `/api/endpoints/${id}/replay`, { since, dry_run: true }],
      ['DELETE', `/api/endpoints/${id}`],
    ];
    for (const [method, path, sent] of calls) {
      const { status, body } = await api.call(method, path, {
        key,
        ...(sent ? { body: sent } : {}),
      });
      expect([path, status < 300, body]).toEqual([path, true, body]);
    }
  });

  it('finds no endpoint of another owner, nor its deliveries', async () => {
    const id = await endpointOf(await api.keyFor('manage'));
    const sent = await api.call('POST', `/api/endpoints/${id}/test`);
    expect(sent.status).toBe(202);
    const { body } = await api.call('GET', `/api/deliveries?endpoint_id=${id}`);
    const delivery = String(body.data[0]?.id);
    const paths = [
      ['GET', `/api/endpoints/${id}`],
      ['GET', `/api/endpoints/${id}/activity?range=hour`],
      ['GET', `/api/deliveries?endpoint_id=${id}`],
      ['GET', `/api/replays?endpoint_id=${id}`],
      ['GET', `/api/deliveries/${delivery}`],
      ['GET', `/api/deliveries/${delivery}/attempts`],
      ['POST', `/api/deliveries/${delivery}/retry`],
    ] as const;
    for (const [method, path] of paths)
      expect([path, (await api.call(method, path, { key })).status]).toEqual([path, 404]);
    const changes = [
      ['PATCH', `/api/endpoints/${id}`, { description: 'x' }],
      ['POST', `/api/endpoints/${id}/rotate`, {}],
      ['POST', `/api/endpoints/${id}/filter/test`, { type: 'wallet.observed' }],
      ['POST', `/api/endpoints/${id}/replay`, { since: '2026-01-01T00:00:00Z' }],
      ['DELETE', `/api/endpoints/${id}`, undefined],
    ] as const;
    for (const [method, path, body] of changes)
      expect([path, (await api.call(method, path, { key, body })).status]).toEqual([path, 403]);
    const { body: list } = await api.call('GET', '/api/endpoints?limit=500', { key });
    expect(list.data.map((row) => row.id)).not.toContain(id);
  });

  it('sees no more with scopes that show no webhooks', async () => {
    const other = await endpointOf(await api.keyFor('manage'));
    for (const scope of ['gateway', 'decide', 'manage']) {
      const owner = `portal and ${scope}`;
      const made = await api.call('POST', '/api/keys', {
        body: { name: scope, owner, scopes: ['portal', scope] },
      });
      const both = String(made.body.key);
      const { body } = await api.call('GET', '/api/endpoints?limit=500', { key: both });
      expect(body.data).toEqual([]);
      const path = `/api/endpoints/${other}/figures`;
      expect((await api.call('GET', path, { key: both })).status).toBe(404);
    }
  });

  it('names the endpoint whose deliveries or replays it lists', async () => {
    for (const path of ['/api/deliveries', '/api/replays'])
      expect((await api.call('GET', path, { key })).status).toBe(400);
  });

  it('may call nothing that the document does not open to it', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const paths = body.paths as Record<
      string,
      Record<string, { security?: Record<string, string[]>[] }>
    >;
    const closed: string[] = [];
    for (const [path, methods] of Object.entries(paths))
      for (const [method, { security = [] }] of Object.entries(methods)) {
        const scopes = security.flatMap((one) => Object.values(one).flat());
        if (scopes.length === 0 || scopes.includes('portal') || path.startsWith('/v1/')) continue;
        const at = path.replaceAll(/\{\w+\}/g, 'op_01890000-0000-7000-8000-000000000000');
        const { status } = await api.api.request(at, {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${key}` },
        });
        closed.push(`${method} ${path} ${status}`);
      }
    expect(closed.length).toBeGreaterThan(60);
    expect(closed.filter((one) => !one.endsWith(' 403'))).toEqual([]);
  });
});
