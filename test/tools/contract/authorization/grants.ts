/** Sections 2.8, 4.4 and 5: grants, client authentication, the login of an end user, CORS. */
import { checkToken, obtain, refusedAuthorization } from '../client/endpoints.ts';
import {
  authorize,
  authorizeQuery,
  codeGrant,
  locationOf,
  ownMember,
  redirectParams,
  redirectUri,
  submitLogin,
} from '../client/login.ts';
import { basicOf, clientOf, type Service } from '../client/service.ts';
import { granted } from '../client/shared-replies.ts';
import { nonce } from '../client/test-data.ts';
import { ensure, equal, NotChecked, type Statement, statement } from '../statement.ts';

const CLIENT = { grant_type: 'client_credentials' };
const UNREGISTERED_URI = 'https://not-registered.example/callback';

const GRANTS: Statement[] = [
  statement('4.4', 'client_credentials answers HTTP 200 and a record', async (service) => {
    equal('the HTTP code', (await granted(service, 'client_credentials')).status, 200);
  }),
  ...['refresh_token', 'scope', 'member_no', 'nickname'].map((name) =>
    statement('4.4', `client_credentials: the record is without ${name}`, async (service) => {
      const reply = await granted(service, 'client_credentials');
      reply.record.text('access_token');
      ensure(
        !reply.record.at(name).present,
        `${name} should be absent; received: ${reply.summary}`,
      );
    }),
  ),
  ...['code', 'redirect_uri'].map((left) =>
    statement('4.4', `authorization_code: ${left} is required`, async (service) => {
      const uri = await redirectUri(service);
      const form = { grant_type: 'authorization_code', code: nonce(), redirect_uri: uri };
      const without = Object.entries(form).filter(([name]) => name !== left);
      const reply = await obtain(service, Object.fromEntries(without));
      equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
    }),
  ),
  statement('4.4', 'authorization_code exchanges a code for a full record', async (service) => {
    equal('the HTTP code', (await granted(service, 'authorization_code')).status, 200);
  }),
  statement('4.4', 'authorization_code: redirect_uri must be registered', async (service) => {
    const code = (await redirectParams(service)).get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, redirect_uri: UNREGISTERED_URI };
    refusedAuthorization(await obtain(service, form), 'redirect_uri_mismatch');
  }),
  statement('4.4', 'refresh_token: refresh_token is required', async (service) => {
    const reply = await obtain(service, { grant_type: 'refresh_token' });
    equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
  }),
  statement('4.4', 'refresh_token answers a full record', async (service) => {
    equal('the HTTP code', (await granted(service, 'refresh_token')).status, 200);
  }),
  statement('4.4', 'refresh_token answers a token of the same member', async (service) => {
    const { record } = await codeGrant(service);
    const form = { grant_type: 'refresh_token', refresh_token: record.text('refresh_token') };
    const next = (await obtain(service, form)).record;
    equal('member_no', next.integer('member_no'), record.integer('member_no'));
    equal('nickname', next.text('nickname'), record.text('nickname'));
  }),
  statement('4.4', 'check_token: token is required', async (service) => {
    const reply = await service.send('auth', 'GET', '/v1/oauth/check_token');
    equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
  }),
  statement('4.4', 'check_token answers a record for a client token', async (service) => {
    const reply = await checkToken(service, await service.clientToken());
    equal('the HTTP code', reply.status, 200);
    reply.record.flag('active');
  }),
  statement('4.4', 'check_token answers a record for a user token', async (service) => {
    const reply = await checkToken(service, (await service.user()).access);
    equal('the HTTP code', reply.status, 200);
    reply.record.flag('active');
  }),
];

const BASIC: Statement[] = [
  statement('4.4', 'Token requests carry Basic: without it they are refused', async (service) => {
    equal('the HTTP code', (await obtain(service, CLIENT, 'anonymous')).status, 401);
  }),
  statement('4.4', 'A code exchange without Basic is refused', async (service) => {
    const code = (await redirectParams(service)).get('code') ?? '';
    const redirect_uri = await redirectUri(service);
    const form = { grant_type: 'authorization_code', code, redirect_uri };
    equal('the HTTP code', (await obtain(service, form, 'anonymous')).status, 401);
  }),
  statement('4.4', 'A refresh without Basic is refused', async (service) => {
    const { refresh } = await service.user();
    if (refresh === undefined) throw new NotChecked('needs --refresh-token');
    const form = { grant_type: 'refresh_token', refresh_token: refresh };
    equal('the HTTP code', (await obtain(service, form, 'anonymous')).status, 401);
  }),
  statement('4.4', 'A wrong client_secret is refused', async (service) => {
    const basic = basicOf({ ...clientOf(service), secret: nonce() });
    equal('the HTTP code', (await obtain(service, CLIENT, { basic })).status, 401);
  }),
  statement('4.4', 'A wrong client_id is refused', async (service) => {
    const basic = basicOf({ ...clientOf(service), id: nonce() });
    equal('the HTTP code', (await obtain(service, CLIENT, { basic })).status, 401);
  }),
  statement('4.4', 'Basic is the base64 encoding: the bare text is refused', async (service) => {
    const { id, secret } = clientOf(service);
    const reply = await obtain(service, CLIENT, { basic: `${id}:${secret}` });
    equal('the HTTP code', reply.status, 401);
  }),
];

const REQUIRED = ['response_type', 'client_id', 'redirect_uri'] as const;

const AUTHORIZE: Statement[] = [
  ...REQUIRED.map((name) =>
    statement('4.4', `authorize: ${name} is required`, async (service) => {
      const { [name]: _left, ...query } = await authorizeQuery(service);
      const reply = await authorize(service, query);
      equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
    }),
  ),
  statement('4.4', 'authorize: response_type is code', async (service) => {
    const query = { ...(await authorizeQuery(service)), response_type: 'code' };
    const { status } = await authorize(service, query);
    ensure(status < 400, `response_type=code should be taken; the HTTP code is ${status}`);
  }),
  statement('4.4', 'authorize answers no JSON body', async (service) => {
    const reply = await authorize(service, await authorizeQuery(service));
    ensure(reply.body === undefined, `authorize should not answer JSON: ${reply.summary}`);
  }),
  statement('4.4', 'authorize: the redirect goes to redirect_uri', async (service) => {
    const { origin, pathname } = locationOf(await submitLogin(service));
    equal('the redirect target', origin + pathname, await redirectUri(service));
  }),
  statement('4.4', 'authorize: the redirect carries a code', async (service) => {
    const code = (await redirectParams(service)).get('code');
    ensure(code, 'the redirect should carry a code');
  }),
  statement('4.4', 'authorize: the redirect carries the state', async (service) => {
    const state = `a b+c&d=é/${nonce()}`;
    equal('state', (await redirectParams(service, state)).get('state'), state);
  }),
  statement('4.4', 'authorize: state is optional', async (service) => {
    const params = await redirectParams(service);
    equal('a state that was not sent', params.get('state'), null);
    ensure(params.get('code'), 'the redirect should also carry a code without a state');
  }),
  statement('2.8', 'Only registered redirect URIs may be used', async (service) => {
    const query = { ...(await authorizeQuery(service)), redirect_uri: UNREGISTERED_URI };
    refusedAuthorization(await authorize(service, query), 'redirect_uri_mismatch');
  }),
  statement('2.8', 'The Client ID identifies the app: another is refused', async (service) => {
    const query = { ...(await authorizeQuery(service)), client_id: nonce() };
    const { status } = await authorize(service, query);
    ensure(status >= 400, `an unknown client_id should be refused; the HTTP code is ${status}`);
  }),
];

const CORS_PATHS = [
  ['POST', '/v1/oauth/token'],
  ['GET', '/v1/oauth/authorize'],
  ['GET', '/v1/oauth/check_token'],
] as const;

const CORS: Statement[] = CORS_PATHS.flatMap(([method, path]) => [
  statement('4.4', `${path} does not support CORS: no such header`, (service) =>
    refusesOrigin(service, method, path, {}),
  ),
  statement('4.4', `${path} does not support CORS: no preflight is granted`, (service) =>
    refusesOrigin(service, 'OPTIONS', path, { 'access-control-request-method': method }),
  ),
]);

async function refusesOrigin(
  service: Service,
  method: string,
  path: string,
  more: Record<string, string>,
): Promise<void> {
  const headers = { origin: 'https://app.example', ...more };
  const form = method === 'POST' ? { form: CLIENT } : {};
  const reply = await service.send('auth', method, path, { headers, ...form });
  const found = Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));
  equal('the CORS headers of the answer', found.join(', '), '');
}

const FLOW: Statement[] = [
  statement('5', 'Client Credentials works without an end user', async (service) => {
    equal('the HTTP code', (await granted(service, 'client_credentials')).status, 200);
  }),
  statement('5', 'Two grant types obtain tokens: password is none of them', async (service) => {
    const form = { grant_type: 'password', username: 'ada', password: nonce() };
    equal('the HTTP code', (await obtain(service, form)).status, 400);
  }),
  statement('5', 'Authorization Code needs a login: without one there is no code', async (s) => {
    const reply = await authorize(s, await authorizeQuery(s));
    const to = reply.headers.location;
    ensure(!String(to ?? '').includes('code='), `a code was given without a login: ${to}`);
  }),
  statement(
    '5',
    'The code that comes back is exchanged for tokens of that user',
    async (service) => {
      const { record } = await codeGrant(service);
      equal('member_no', String(record.integer('member_no')), await ownMember(service));
    },
  ),
];

export const AUTHORIZATION: Statement[] = [...GRANTS, ...BASIC, ...AUTHORIZE, ...CORS, ...FLOW];
