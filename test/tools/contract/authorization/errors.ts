/** Section 7.3: errors of the authorization endpoints. */
import { checkToken, obtain, refusedAuthorization } from '../client/endpoints.ts';
import { authorize, redirectParams, redirectUri } from '../client/login.ts';
import type { Reply } from '../client/reply.ts';
import { clientOf, type Service } from '../client/service.ts';
import { nonce } from '../client/test-data.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

const UNREGISTERED_URI = 'https://not-registered.example/callback';

const DETAILS: [detail: string, title: string, go: (service: Service) => Promise<Reply>][] = [
  ['invalid_request', 'a grant without grant_type', (service) => obtain(service, {})],
  [
    'invalid_request',
    'check_token without token',
    (service) => service.send('auth', 'GET', '/v1/oauth/check_token'),
  ],
  ['invalid_token', 'a token that is malformed', (service) => checkToken(service, nonce())],
  [
    'invalid_grant',
    'an unknown refresh token',
    (service) => obtain(service, { grant_type: 'refresh_token', refresh_token: nonce() }),
  ],
  ['invalid_grant', 'an unknown grant type', (service) => obtain(service, { grant_type: nonce() })],
  [
    'unauthorized_client',
    'an authorization code that was not authorized',
    async (service) => {
      const redirect_uri = await redirectUri(service);
      return obtain(service, { grant_type: 'authorization_code', code: nonce(), redirect_uri });
    },
  ],
  [
    'unsupported_response_type',
    'an undefined response type',
    async (service) => {
      const query = { response_type: 'token', client_id: clientOf(service).id };
      return authorize(service, { ...query, redirect_uri: await redirectUri(service) });
    },
  ],
  [
    'redirect_uri_mismatch',
    'an authorize request with a redirect URI that is not allowed',
    (service) => {
      const query = { response_type: 'code', client_id: clientOf(service).id };
      return authorize(service, { ...query, redirect_uri: UNREGISTERED_URI });
    },
  ],
  [
    'redirect_uri_mismatch',
    'a code exchange with a redirect URI that is not allowed',
    async (service) => {
      const code = (await redirectParams(service)).get('code') ?? '';
      const form = { grant_type: 'authorization_code', code, redirect_uri: UNREGISTERED_URI };
      return obtain(service, form);
    },
  ],
];

/** A response with HTTP 400. */
function refusal(service: Service): Promise<Reply> {
  return service.once('authorization error', () => checkToken(service, nonce()));
}

const SHAPE: Statement[] = [
  statement('7.3', 'status is the integer 400', async (service) => {
    equal('status', (await refusal(service)).top.integer('status'), 400n);
  }),
  statement('7.3', 'error.code is an integer', async (service) => {
    (await refusal(service)).top.object('error').integer('code');
  }),
  ...['message', 'detail'].map((name) =>
    statement('7.3', `error.${name} is a string`, async (service) => {
      (await refusal(service)).top.object('error').text(name);
    }),
  ),
  statement('7.3', 'error.data is null or a value', async (service) => {
    const { present } = (await refusal(service)).top.object('error').at('data');
    ensure(present, `data should be present; received: ${(await refusal(service)).summary}`);
  }),
  statement('7.3', 'error.errors is an object', async (service) => {
    (await refusal(service)).top.object('error').object('errors');
  }),
];

function faultyCheck(service: Service, status: number): Promise<Reply> {
  const token = nonce();
  const { control } = service;
  return control.withFault({ kind: 'status', status }, token, () => checkToken(service, token));
}

const STATUSES: Statement[] = [
  statement('7.3', 'HTTP 400: bad request or invalid parameter', async (service) => {
    equal('the HTTP code', (await obtain(service, {})).status, 400);
  }),
  statement('7.3', 'HTTP 401: authentication failed for lack of authority', async (service) => {
    const reply = await obtain(service, { grant_type: 'client_credentials' }, 'anonymous');
    equal('the HTTP code', reply.status, 401);
  }),
  statement('7.3', 'HTTP 403: URI not accessible', async (service) => {
    equal('the HTTP code', (await faultyCheck(service, 403)).status, 403);
  }),
  statement('7.3', 'HTTP 404: URL not found', async (service) => {
    const reply = await service.send('auth', 'GET', '/v1/oauth/no-such-url');
    equal('the HTTP code', reply.status, 404);
  }),
  statement('7.3', 'HTTP 500: authorization server error', async (service) => {
    equal('the HTTP code', (await faultyCheck(service, 500)).status, 500);
  }),
];

export const ERRORS_AUTHORIZATION: Statement[] = [
  ...DETAILS.map(([detail, title, go]) =>
    statement('7.3', `${detail} is the detail for ${title}`, async (service) =>
      refusedAuthorization(await go(service), detail),
    ),
  ),
  ...SHAPE,
  ...STATUSES,
];
