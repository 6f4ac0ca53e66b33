/** Keys: made once, shown once, revoked for good. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();

const wish = { name: 'reports', owner: 'finance', scopes: ['read'] };

it('A key works from the moment it is made until it is revoked', async () => {
  const { status, body } = await api.call('POST', '/api/keys', { body: wish });
  expect(status).toBe(201);
  expect(body).toMatchObject({ ...wish, limits: null, revoked_at: null });
  const key = body.key as string;
  expect((await api.call('GET', '/api/status', { key })).status).toBe(200);
  expect((await api.call('DELETE', `/api/keys/${body.id}`)).status).toBe(204);
  expect((await api.call('GET', '/api/status', { key })).status).toBe(401);
});

it('The limits of a key are shown where it is made and in lists', async () => {
  const limits = { kinds: ['give'], operators: ['1'], amount_per_call: '9'.repeat(30) };
  const { body } = await api.call('POST', '/api/keys', {
    body: { ...wish, scopes: ['gateway'], limits },
  });
  expect(body.limits).toEqual(limits);
  const { body: list } = await api.call('GET', '/api/keys?limit=500');
  expect(list.data.find(({ id }) => id === body.id)?.limits).toEqual(limits);
});

it('A list of keys shows each once and no secret', async () => {
  const { body } = await api.call('POST', '/api/keys', { body: wish });
  const pages = await api.pagesOf('/api/keys?limit=1');
  expect(JSON.stringify(pages)).not.toContain('thk_');
  const ids = pages.flatMap(({ data }) => data.map(({ id }) => id));
  expect(ids).toContain(body.id);
  expect(new Set(ids).size).toBe(ids.length);
});

it.each([
  [{ ...wish, scopes: [] }, 'scopes'],
  [{ ...wish, scopes: ['read', 'read'] }, 'scopes'],
  [{ ...wish, scopes: ['root'] }, 'scopes.0'],
  [{ ...wish, owner: '' }, 'owner'],
  [{ ...wish, name: 'a\0b' }, 'name'],
  [{ ...wish, limits: { kinds: ['gift'] } }, 'limits.kinds.0'],
  [{ ...wish, limits: { amount_per_day: '1.5' } }, 'limits.amount_per_day'],
  [{ ...wish, limits: { per_day: '1' } }, 'limits.per_day'],
])('A key of %j is refused and names %s', async (body, path) => {
  const answer = await api.call('POST', '/api/keys', { body });
  expect(answer.status).toBe(400);
  expect(answer.body.errors.map((error) => error.path)).toEqual([path]);
});
