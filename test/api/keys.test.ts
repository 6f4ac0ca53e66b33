/** Creating, listing and revoking API keys. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();

const input = { name: 'reports', owner: 'finance', scopes: ['read'] };

it('A key is valid from its creation until it is revoked', async () => {
  const { status, body } = await api.call('POST', '/api/keys', { body: input });
  expect(status).toBe(201);
  expect(body).toMatchObject({ ...input, limits: null, revoked_at: null });
  const key = body.key as string;
  expect((await api.call('GET', '/api/status', { key })).status).toBe(200);
  expect((await api.call('DELETE', `/api/keys/${body.id}`)).status).toBe(204);
  expect((await api.call('GET', '/api/status', { key })).status).toBe(401);
});

it('The limits of a key are part of its creation and of lists', async () => {
  const limits = { kinds: ['give'], operators: ['1'], amount_per_call: '9'.repeat(30) };
  const { body } = await api.call('POST', '/api/keys', {
    body: { ...input, scopes: ['gateway'], limits },
  });
  expect(body.limits).toEqual(limits);
  const { body: list } = await api.call('GET', '/api/keys?limit=500');
  expect(list.data.find(({ id }) => id === body.id)?.limits).toEqual(limits);
});

it('A list of keys contains each key once and no secret', async () => {
  const { body } = await api.call('POST', '/api/keys', { body: input });
  const pages = await api.pagesOf('/api/keys?limit=1');
  expect(JSON.stringify(pages)).not.toContain('thk_');
  const ids = pages.flatMap(({ data }) => data.map(({ id }) => id));
  expect(ids).toContain(body.id);
  expect(new Set(ids).size).toBe(ids.length);
});

it.each([
  [{ ...input, scopes: [] }, 'scopes'],
  [{ ...input, scopes: ['read', 'read'] }, 'scopes'],
  [{ ...input, scopes: ['root'] }, 'scopes.0'],
  [{ ...input, owner: '' }, 'owner'],
  [{ ...input, name: 'a\0b' }, 'name'],
  [{ ...input, limits: { kinds: ['gift'] } }, 'limits.kinds.0'],
  [{ ...input, limits: { amount_per_day: '1.5' } }, 'limits.amount_per_day'],
  [{ ...input, limits: { per_day: '1' } }, 'limits.per_day'],
])('The key %j is refused with the name of the field %s', async (body, path) => {
  const answer = await api.call('POST', '/api/keys', { body });
  expect(answer.status).toBe(400);
  expect(answer.body.errors.map((error) => error.path)).toEqual([path]);
});

it('Lists show when a key expires and when it was last used', async () => {
  const expiresAt = api.clock.now() + 60_000;
  const { body } = await api.call('POST', '/api/keys', {
    body: { ...input, expires_at: new Date(expiresAt).toISOString() },
  });
  const key = body.key as string;
  expect((await api.call('GET', '/api/status', { key })).status).toBe(200);
  const { body: list } = await api.call('GET', '/api/keys?limit=500');
  expect(list.data.find(({ id }) => id === body.id)).toMatchObject({
    expires_at: new Date(expiresAt).toISOString(),
    last_used_at: expect.stringMatching(/Z$/),
  });
  const past = { ...input, expires_at: '2020-01-01T00:00:00Z' };
  expect((await api.call('POST', '/api/keys', { body: past })).body.code).toBe('invalid_request');
});

it('The audit trail has every change with its owner and result, and no secret', async () => {
  const first = await api.call('POST', '/api/freeze', { body: { reason: 'audited' } });
  expect(first.status).toBe(200);
  await api.call('POST', '/api/unfreeze', { body: { reason: 'audited' } });
  await api.call('POST', '/api/unfreeze', { body: { reason: 'twice' } });
  const headers = { authorization: 'Bearer secret-of-the-receiver' };
  const url = 'https://example.test/secret-path?token=secret-token';
  await api.call('POST', '/api/endpoints', { body: { url, headers, event_types: ['wallet.*'] } });
  const { body } = await api.call('GET', '/api/audit?limit=4');
  expect(body.data).toMatchObject([
    {
      action: 'POST /api/endpoints',
      detail: { event_types: ['wallet.*'], url: 'https://example.test' },
      result: 'done',
    },
    { action: 'POST /api/unfreeze', detail: { reason: 'twice' }, result: 'conflict' },
    { action: 'POST /api/unfreeze', owner: 'owner of admin', result: 'done' },
    { action: 'POST /api/freeze', detail: { reason: 'audited' }, result: 'done' },
  ]);
  expect(JSON.stringify(body)).not.toContain('secret');
  const key = await api.keyFor('read', 'manage', 'decide', 'gateway');
  expect((await api.call('GET', '/api/audit', { key })).body.code).toBe('forbidden');
});
