/** Authorization rules that the contract suite does not check: codes, refresh tokens, the login. */
import { describe, expect, it } from 'vitest';
import { BASIC, codeFor, REDIRECT, useCaller } from '../client.ts';

const caller = useCaller();
const AUTHORIZE = '/v1/oauth/authorize';

const grant = (form: Record<string, string>) =>
  caller.send('POST', '/v1/oauth/token', { authorization: BASIC, form });
const exchange = (code: string, redirect_uri = REDIRECT) =>
  grant({ grant_type: 'authorization_code', code, redirect_uri });
const query = (change: Record<string, string> = {}) =>
  new URLSearchParams({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: REDIRECT,
    ...change,
  });

describe('An authorization code', () => {
  const CASES: [title: string, detail: string, request: () => ReturnType<typeof grant>][] = [
    [
      'is refused when it was used before',
      'invalid_grant',
      async () => {
        const code = await codeFor(caller.send, 1);
        await exchange(code);
        return exchange(code);
      },
    ],
    [
      'is refused after ten minutes',
      'invalid_grant',
      async () => {
        const code = await codeFor(caller.send, 1);
        caller.clock.advance(600_000);
        return exchange(code);
      },
    ],
    [
      'is refused with the redirect URI of another request',
      'redirect_uri_mismatch',
      async () => exchange(await codeFor(caller.send, 1), 'http://localhost:3000/callback'),
    ],
  ];
  it.each(CASES)('%s: %s', async (_title, detail, request) => {
    const reply = await request();
    expect([reply.status, reply.at('error.detail')]).toEqual([400, detail]);
  });
});

describe('A token', () => {
  it('expires exactly 24 hours after its issue', async () => {
    const check = () =>
      caller.send('GET', `/v1/oauth/check_token?token=${caller.client}`, { authorization: BASIC });
    expect((await check()).at('exp')).toBe(Date.UTC(2026, 0, 2) / 1000);
    caller.clock.advance(86_400_000 - 1);
    expect((await check()).at('active')).toBe(true);
    caller.clock.advance(1);
    expect((await check()).at('active')).toBe(false);
  });

  it('is refreshed by the same refresh token, or by a new one each time with refresh_rotates', async () => {
    const refresh_token = String((await caller.login(1)).at('refresh_token'));
    const refresh = () => grant({ grant_type: 'refresh_token', refresh_token });
    expect((await refresh()).at('refresh_token')).toBe(refresh_token);
    caller.sandbox.control.setSwitches({ refresh_rotates: true });
    expect((await refresh()).at('refresh_token')).not.toBe(refresh_token);
    expect((await refresh()).at('error.detail')).toBe('invalid_grant');
  });
});

describe('The login page', () => {
  it('names app, members and redirect URI, and escapes the request', async () => {
    const state = '"><script>alert(1)</script>';
    const page = await caller.send('GET', `${AUTHORIZE}?${query({ state })}`);
    expect(page.headers.get('content-type')).toContain('text/html');
    for (const name of ['Sandbox App', 'Ada', 'Heidi', REDIRECT]) expect(page.text).toContain(name);
    expect(page.text).not.toContain('<script>');
  });

  it('refuses a number that belongs to no member', async () => {
    const form = { ...Object.fromEntries(query()), member_no: '99' };
    expect((await caller.send('POST', AUTHORIZE, { form })).status).toBe(401);
  });

  it('redirects to a URI that was registered later, and keeps its query', async () => {
    const redirect_uri = 'http://127.0.0.1:9/other?x=1';
    caller.sandbox.control.addRedirectUri(redirect_uri);
    const form = { ...Object.fromEntries(query({ redirect_uri })), member_no: '1' };
    const { headers } = await caller.send('POST', AUTHORIZE, { form });
    expect(headers.get('location')).toMatch(/^http:\/\/127\.0\.0\.1:9\/other\?x=1&code=\w+$/);
  });
});
