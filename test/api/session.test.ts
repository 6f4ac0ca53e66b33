/** Sessions of browsers: a key in a cookie that only the daemon reads. */
import { beforeAll, describe, expect, it } from 'vitest';
import { makeSessionRoutes } from '../../src/console/console.ts';
import { useApi } from './rig.ts';

const api = useApi();
let key: string;

beforeAll(async () => {
  const { keys, sessions, trusted } = api.deps;
  api.api.route('/', makeSessionRoutes({ keys, sessions, trusted, basePath: '', timeZone: 'UTC' }));
  key = await api.keyFor('read', 'manage');
});

const JSON_TYPE = { 'content-type': 'application/json' };

function signIn(secret: string, headers: Record<string, string> = JSON_TYPE) {
  const body = JSON.stringify({ key: secret });
  const length = { 'content-length': String(body.length) };
  return api.api.request('/session', { method: 'POST', headers: { ...length, ...headers }, body });
}

/** The cookie of a new session, and its token. */
async function newSession(secret = key) {
  const answer = await signIn(secret);
  expect(answer.status).toBe(200);
  const [cookie = ''] = answer.headers.getSetCookie();
  const shown = (await answer.json()) as { csrf_token: string; owner: string; expires_at: string };
  return { set: cookie, cookie: cookie.split(';')[0] ?? '', shown };
}

const withCookie = (method: string, path: string, headers: Record<string, string>) =>
  api.api.request(path, { method, headers });

describe('A session', () => {
  it('is a cookie that scripts cannot read, other sites cannot send, and does not show the key', async () => {
    const { set, cookie, shown } = await newSession();
    expect(set).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.toContain(key);
    const prefix = 'tallyhook_session=s1.';
    expect(cookie.slice(0, prefix.length)).toBe(prefix);
    const encrypted = Buffer.from(cookie.slice(prefix.length), 'base64url');
    expect(encrypted.length).toBeGreaterThan(key.length);
    expect(encrypted.toString()).not.toContain('thk_');
    expect(shown).toMatchObject({ owner: 'owner of read manage', scopes: ['read', 'manage'] });
    const lastsMs = Date.parse(shown.expires_at) - api.clock.now();
    expect(lastsMs).toBeLessThanOrEqual(43_200_000);
    expect(lastsMs).toBeGreaterThan(43_200_000 - 60_000);
  });

  it('reads with its cookie, and says who it is', async () => {
    const { cookie, shown } = await newSession();
    expect((await withCookie('GET', '/api/status', { cookie })).status).toBe(200);
    const again = await withCookie('GET', '/session', { cookie });
    expect(await again.json()).toEqual(shown);
  });

  it('changes something only with its token too, which another site cannot read', async () => {
    const { cookie, shown } = await newSession();
    const other = await newSession();
    const path = '/api/watches/wtc_01890000-0000-7000-8000-000000000000';
    for (const token of [undefined, 'wrong', other.shown.csrf_token]) {
      const headers = { cookie, ...(token === undefined ? {} : { 'tallyhook-csrf': token }) };
      expect((await withCookie('DELETE', path, headers)).status, token).toBe(403);
    }
    const headers = { cookie, 'tallyhook-csrf': shown.csrf_token };
    expect((await withCookie('DELETE', path, headers)).status).toBe(404);
  });

  it('ends in the browser with DELETE, and everywhere with its key', async () => {
    const { body } = await api.call('POST', '/api/keys', {
      body: { name: 'tab', owner: 'ann', scopes: ['read'] },
    });
    const { cookie } = await newSession(String(body.key));
    const ended = await withCookie('DELETE', '/session', { cookie });
    expect(ended.status).toBe(204);
    expect(ended.headers.getSetCookie()[0]).toMatch(/^tallyhook_session=; Max-Age=0/);
    expect((await withCookie('GET', '/session', { cookie })).status).toBe(200);
    await api.call('DELETE', `/api/keys/${body.id}`);
    const gone = await withCookie('GET', '/session', { cookie });
    expect([gone.status, gone.headers.getSetCookie()[0]]).toEqual([
      204,
      expect.stringMatching(/^tallyhook_session=; Max-Age=0/),
    ]);
    expect((await withCookie('GET', '/api/status', { cookie })).status).toBe(401);
  });

  it('ends no later than its key', async () => {
    const expiresAt = new Date(api.clock.now() + 60_000).toISOString();
    const { body } = await api.call('POST', '/api/keys', {
      body: { name: 'short', owner: 'ann', scopes: ['read'], expires_at: expiresAt },
    });
    const { shown } = await newSession(String(body.key));
    expect(shown.expires_at).toBe(expiresAt);
  });

  it('does not replace a key in the header, not even a wrong one', async () => {
    const { cookie } = await newSession();
    const authorization = 'Bearer thk_wrong-wrong-wrong-wrong-wrong-wrong-wrong';
    expect((await withCookie('GET', '/api/status', { cookie, authorization })).status).toBe(401);
  });
});

it.each<[string, Record<string, string>]>([
  ['as a form of another site sends it', { 'content-type': 'text/plain' }],
  ['with a body that is too long', { ...JSON_TYPE, 'content-length': '301' }],
])('A sign-in %s is refused', async (_, headers) => {
  expect((await signIn(key, headers)).status).toBe(400);
});

it.each([
  ['that does not exist', async () => `thk_${'x'.repeat(43)}`, 401],
  ['that may read nothing', () => api.keyFor('gateway'), 403],
])('A sign-in with a key %s is refused', async (_, secretOf, status) => {
  expect((await signIn(await secretOf())).status).toBe(status);
});

it.each(['', 's1.', 'x', `s1.${'A'.repeat(80)}`])(
  'The cookie %j, which no daemon made, is no session',
  async (value) => {
    const cookie = `tallyhook_session=${value}`;
    expect((await withCookie('GET', '/api/status', { cookie })).status).toBe(401);
  },
);
