/** Sections 4.4, 5 and 7.3: grants, codes, checks, expiry, the login page. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OAUTH_DETAILS } from '../../src/sandbox/endpoints/errors.ts';
import { BASIC, type Caller, codeFor, REDIRECT, startCaller, stopAll } from './client.ts';

let caller: Caller;
const DAY_S = 86_400;
const AUTHORIZE = '/v1/oauth/authorize';

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(() => {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
});

const grant = (form: Record<string, string>, authorization = BASIC) =>
  caller.send('POST', '/v1/oauth/token', { authorization, form });
const check = (token: string) =>
  caller.send('GET', `/v1/oauth/check_token?token=${token}`, { authorization: BASIC });
const exchange = (code: string, redirect_uri = REDIRECT) =>
  grant({ grant_type: 'authorization_code', code, redirect_uri });
const query = (change: Record<string, string> = {}) =>
  new URLSearchParams({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: REDIRECT,
    ...change,
  });

describe('Tokens', () => {
  test('a client token has no member and no refresh token', async () => {
    const reply = await grant({ grant_type: 'client_credentials' });
    expect(reply.body).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: DAY_S,
      app_no: 101,
    });
    expect((await check(String(reply.at('access_token')))).body).toEqual({
      grant_type: 'client_credentials',
      active: true,
      app_no: 101,
      exp: Date.UTC(2026, 0, 2) / 1000,
      client_id: 'app',
    });
  });

  test('a user token names its member', async () => {
    const reply = await caller.login(2);
    expect(reply.body).toMatchObject({
      token_type: 'bearer',
      refresh_token: expect.any(String),
      expires_in: DAY_S,
      scope: 'default',
      app_no: 101,
      member_no: 2,
      nickname: 'Ben',
    });
    const record = { grant_type: 'authorization_code', member_no: 2, nickname: 'Ben' };
    expect((await check(String(reply.at('access_token')))).body).toMatchObject(record);
  });

  test('a token ends after 24 hours and is renewed by its refresh token', async () => {
    const reply = await caller.login(1);
    const old = String(reply.at('access_token'));
    const own = (as: string) => caller.send('GET', '/v1/app/token/account', { as });
    caller.clock.advance(DAY_S * 1000 - 1);
    expect((await own(old)).at('status')).toBe(200);
    expect((await check(old)).at('active')).toBe(true);
    caller.clock.advance(1);
    expect((await own(old)).at('error.code')).toBe('401');
    expect((await check(old)).at('active')).toBe(false);
    const refresh_token = String(reply.at('refresh_token'));
    const renewed = await grant({ grant_type: 'refresh_token', refresh_token });
    expect(renewed.body).toMatchObject({ member_no: 1, nickname: 'Ada', refresh_token });
    expect((await own(String(renewed.at('access_token')))).at('status')).toBe(200);
  });

  test('an expired token is an error when that is switched on', async () => {
    caller.sandbox.control.setSwitches({ check_expired: 'invalid_token' });
    const token = await caller.clientToken();
    caller.clock.advance(DAY_S * 1000);
    expect((await check(token)).at('error.detail')).toBe('invalid_token');
  });

  test('a refresh token is replaced when that is switched on', async () => {
    caller.sandbox.control.setSwitches({ refresh_rotates: true });
    const refresh_token = String((await caller.login(1)).at('refresh_token'));
    const first = await grant({ grant_type: 'refresh_token', refresh_token });
    expect(first.at('refresh_token')).not.toBe(refresh_token);
    const second = await grant({ grant_type: 'refresh_token', refresh_token });
    expect(second.at('error.detail')).toBe('invalid_grant');
  });

  test.each(['Basic bm9ib2R5OnJpZ2h0', 'Bearer x', 'Basic ###', ''])(
    'without the right Basic header there is none: %s',
    async (authorization) => {
      const reply = await grant({ grant_type: 'client_credentials' }, authorization);
      expect([reply.status, reply.at('status')]).toEqual([401, 401]);
    },
  );
});

describe('Every detail of section 7.3 can be met', () => {
  const authorize = (change: Record<string, string>) =>
    caller.send('GET', `${AUTHORIZE}?${query(change)}`);
  const used = async () => {
    const code = await codeFor(caller.send, 1);
    await exchange(code);
    return exchange(code);
  };
  const old = async () => {
    const code = await codeFor(caller.send, 1);
    caller.clock.advance(600_000);
    return exchange(code);
  };
  const elsewhere = async () => {
    const other = 'http://localhost:3000/callback';
    return exchange(await codeFor(caller.send, 1), other);
  };
  const CASES: [detail: string, what: string, ask: () => Promise<{ status: number }>][] = [
    ['invalid_request', 'no grant type', () => grant({})],
    ['invalid_request', 'no code', () => grant({ grant_type: 'authorization_code' })],
    ['invalid_request', 'no refresh token', () => grant({ grant_type: 'refresh_token' })],
    ['invalid_request', 'nothing to check', () => check('')],
    ['invalid_request', 'unknown client', () => authorize({ client_id: 'x' })],
    ['invalid_request', 'no redirect', () => authorize({ redirect_uri: '' })],
    ['invalid_token', 'unknown token', () => check('nonsense')],
    ['invalid_grant', 'unknown grant type', () => grant({ grant_type: 'password' })],
    ['invalid_grant', 'a code used twice', used],
    ['invalid_grant', 'a code too old', old],
    [
      'invalid_grant',
      'unknown refresh',
      () => grant({ grant_type: 'refresh_token', refresh_token: 'x' }),
    ],
    ['unauthorized_client', 'a code never issued', () => exchange('x')],
    ['unsupported_response_type', 'token', () => authorize({ response_type: 'token' })],
    ['redirect_uri_mismatch', 'not registered', () => authorize({ redirect_uri: 'http://evil/' })],
    ['redirect_uri_mismatch', 'not registered', () => exchange('x', 'http://evil/')],
    ['redirect_uri_mismatch', 'not that of the code', elsewhere],
  ];

  test.each(CASES)('%s: %s', async (detail, _what, ask) => {
    const error = { code: 400, message: expect.any(String), detail, data: null, errors: {} };
    expect(await ask()).toMatchObject({ status: 400, body: { status: 400, error } });
  });

  test('and the table above names each of them', () => {
    const met = new Set(CASES.map(([detail]) => detail));
    expect(Object.keys(OAUTH_DETAILS).filter((detail) => !met.has(detail))).toEqual([]);
  });
});

describe('The login', () => {
  test('shows a page that names app and members, and trusts nothing it was given', async () => {
    const state = '"><script>alert(1)</script>';
    const page = await caller.send('GET', `${AUTHORIZE}?${query({ state })}`);
    expect(page.headers.get('content-type')).toContain('text/html');
    for (const name of ['Sandbox App', 'Ada', 'Heidi', REDIRECT]) expect(page.text).toContain(name);
    expect(page.text).not.toContain('<script>');
  });

  test('sends the member back with the code and the state', async () => {
    const form = { ...Object.fromEntries(query({ state: 'a b&c' })), member_no: '1' };
    const reply = await caller.send('POST', AUTHORIZE, { form });
    const location = new URL(reply.headers.get('location') ?? '');
    expect(reply.status).toBe(302);
    expect(location.origin + location.pathname).toBe(REDIRECT);
    expect(location.searchParams.get('state')).toBe('a b&c');
    expect((await exchange(location.searchParams.get('code') ?? '')).status).toBe(200);
  });

  test('lets nobody in who is no member', async () => {
    const form = { ...Object.fromEntries(query()), member_no: '99' };
    expect((await caller.send('POST', AUTHORIZE, { form })).status).toBe(401);
  });

  test('goes only to registered addresses, which can be added', async () => {
    const redirect_uri = 'http://127.0.0.1:9/other?x=1';
    caller.sandbox.control.addRedirectUri(redirect_uri);
    const form = { ...Object.fromEntries(query({ redirect_uri })), member_no: '1' };
    const { headers } = await caller.send('POST', AUTHORIZE, { form });
    expect(headers.get('location')).toMatch(/^http:\/\/127\.0\.0\.1:9\/other\?x=1&code=\w+$/);
  });
});

test('no answer speaks CORS', async () => {
  const headers = { origin: 'http://evil', 'access-control-request-method': 'POST' };
  for (const [method, path] of [
    ['OPTIONS', '/v1/oauth/token'],
    ['POST', '/v1/oauth/token'],
    ['GET', '/v1/system/maintenance'],
    ['OPTIONS', '/_sandbox/reset'],
  ] as const) {
    const reply = await caller.send(method, path, { headers });
    expect([...reply.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
  }
});
