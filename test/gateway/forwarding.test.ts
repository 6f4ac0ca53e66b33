import { describe, expect, it } from 'vitest';
import {
  BODY,
  GIVE,
  READ,
  type RigResponse,
  received,
  type ServiceAnswer,
  SUCCESS,
  setUpGateway,
} from './rig.ts';

const { rig, sql } = await setUpGateway();

const JSON_TYPE: [string, string] = ['content-type', 'application/json'];
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const NFT = '/v1/chain/erc721/1';
let tokens = 1;

const ANSWERS: [string, ServiceAnswer][] = [
  ['success', { status: 200, headers: [JSON_TYPE], body: '{"status":200, "data":{"a":1.0}}' }],
  ['an error under 200', { status: 200, headers: [JSON_TYPE], body: '{"status":404,"error":[]}' }],
  ['an error', { status: 406, headers: [JSON_TYPE], body: '{"status":"406","error":{}}' }],
  ['not found', { status: 404, headers: [['content-type', 'text/html']], body: '<p>no</p>' }],
  ['a failure', { status: 500, headers: [JSON_TYPE], body: '{"status":"500"}' }],
  ['no body', { status: 200, headers: [JSON_TYPE] }],
  ['no content type', { status: 200, body: '{"status":200,"data":{}}' }],
  ['any bytes', { status: 200, headers: [['content-type', 'image/png']], body: BYTES }],
  ['no content', { status: 204 }],
  ['not modified', { status: 304 }],
  ['an unassigned status', { status: 599, headers: [JSON_TYPE], body: '{}' }],
  ['a charset', { status: 200, headers: [['Content-Type', 'text/plain;CHARSET="x"']], body: 'x' }],
  [
    'a redirect with two cookies',
    {
      status: 302,
      headers: [
        ['location', 'https://app.example/cb?code=1&state=%2F'],
        ['set-cookie', 'a=1; Path=/; HttpOnly'],
        ['set-cookie', 'b=2'],
      ],
      body: 'go',
    },
  ],
  [
    'a page with policies',
    {
      status: 200,
      headers: [
        ['content-type', 'text/html'],
        ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
        ['content-security-policy', "script-src 'self'"],
        ['x-frame-options', 'DENY'],
        ['content-disposition', 'attachment'],
        ['referrer-policy', 'no-referrer'],
        ['permissions-policy', 'camera=()'],
        ['cross-origin-opener-policy', 'same-origin'],
        ['cross-origin-resource-policy', 'same-origin'],
      ],
      body: '<p>log in</p>',
    },
  ],
  [
    'an authentication challenge',
    { status: 401, headers: [['www-authenticate', 'Bearer realm="x"'], JSON_TYPE], body: '{}' },
  ],
  [
    'maintenance',
    {
      status: 503,
      headers: [['retry-after', '120'], JSON_TYPE],
      body: '{"message":"maintenance"}',
    },
  ],
];

const OF_CONNECTION = ['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding'];

function expectForwarded(response: RigResponse, { status, headers, body }: ServiceAnswer) {
  expect(response.status).toBe(status);
  expect(response.bytes).toEqual(Buffer.from(body ?? ''));
  const received = Object.entries(response.headers)
    .filter(([name]) => !OF_CONNECTION.includes(name) && !name.startsWith('tallyhook-'))
    .flatMap(([name, value]) => [value ?? ''].flat().map((one) => [name, one]));
  const sent = (headers ?? []).map(([name, value]) => [name.toLowerCase(), value]);
  const added = ['x-content-type-options', 'nosniff'];
  expect(received.toSorted()).toEqual([...sent, added].toSorted());
}

describe.each(ANSWERS)('The answer "%s"', (_what, answer) => {
  it('to a read is returned unchanged, without internal headers', async () => {
    rig.answer(() => ({ ...answer, headers: [...(answer.headers ?? []), ['x-internal', 'no']] }));
    expectForwarded(await rig.call('GET', `${NFT}/tokens`), answer);
  });

  it('to an authorization request is returned unchanged', async () => {
    rig.answer(() => answer);
    expectForwarded(await rig.call('GET', '/v1/oauth/authorize?a=1', { headers: {} }), answer);
  });

  it('to a write is returned unchanged, with the id of the operation', async () => {
    rig.answer(() => answer);
    // A second write on a token with an open outcome would wait.
    const response = await rig.call('POST', `${NFT}/burn`, { body: `tokenId=${tokens++}` });
    expectForwarded(response, answer);
    expect(response.headers['tallyhook-operation']).toMatch(/^op_/);
    expect(response.headers['tallyhook-outcome']).toMatch(/^(accepted|rejected|unknown)$/);
  });
});

it('A request with HEAD gets the headers, and no content-length that the service did not send', async () => {
  rig.answer(() => ({ status: 200, headers: [JSON_TYPE, ['set-cookie', 'a=1']] }));
  const response = await rig.call('HEAD', `${NFT}/tokens`);
  expect(response.status).toBe(200);
  expect(response.headers).toMatchObject({ 'content-type': 'application/json' });
  expect(response.headers['content-length']).toBeUndefined();
  expect(rig.requests[0]?.method).toBe('HEAD');
});

it('A request is sent unchanged, with the managed token and without headers of the gateway', async () => {
  const path = `${GIVE}?a=%2F%41&b=c+d&&e=%22|%c3%a9`;
  const body = Buffer.concat([Buffer.from(BODY), BYTES]);
  const kept = {
    'content-type': 'application/json;charset=weird',
    'content-encoding': 'identity',
    accept: 'text/x',
  };
  const headers = {
    authorization: `Bearer ${rig.secret}`,
    ...kept,
    'accept-encoding': 'gzip, br',
    'x-forwarded-for': '10.0.0.1',
    'tallyhook-reference': 'order 7',
    'idempotency-key': 'once',
  };
  await rig.call('POST', path, { headers, body });
  expect(rig.requests).toMatchObject([
    {
      method: 'POST',
      url: path,
      body,
      headers: { ...kept, authorization: 'Bearer managed', 'accept-encoding': 'identity' },
    },
  ]);
  const sent = JSON.stringify(rig.requests[0]?.headers);
  expect(sent).not.toMatch(/thk_|idempotency|tallyhook|forwarded/i);
});

it('A request to the authorization host is neither observed nor recorded nor logged', async () => {
  rig.answer(() => SUCCESS);
  await rig.call('GET', '/v1/app/token/account?addr=x');
  await rig.call('GET', '/v1/oauth/check_token?token=hush-token-1', { headers: {} });
  await rig.call('POST', '/v1/oauth/token', {
    headers: { authorization: 'Basic aHVzaDpodXNo' },
    body: 'grant_type=refresh_token&refresh_token=hush-token-2',
  });
  expect(rig.reads).toMatchObject([
    { path: '/v1/app/token/account', query: '?addr=x', status: 200 },
  ]);
  expect(rig.requests.at(-1)?.headers.authorization).toBe('Basic aHVzaDpodXNo');
  expect(rig.logged.text).not.toMatch(/hush|aHVzaDpodXNo/);
  const rows = await sql`select id from tallyhook.operations where path like '/v1/oauth%'`;
  expect(rows).toEqual([]);
});

it.each(['gzip', 'br', 'deflate, identity', 'zstd'])(
  'A write whose body has the content encoding %s is refused, since it could not be recorded',
  async (encoding) => {
    const before = await sql`select from tallyhook.operations`;
    const headers = { authorization: `Bearer ${rig.secret}`, 'content-encoding': encoding };
    for (const path of [GIVE, '/v1/app/token/events/1'])
      expect(await rig.call('POST', path, { headers, body: BODY })).toMatchObject({
        status: 415,
        json: { code: 'unsupported_media_type' },
      });
    expect(rig.requests).toEqual([]);
    expect((await sql`select from tallyhook.operations`).count).toBe(before.count);
  },
);

it('The body of an authorization request passes in any content encoding', async () => {
  const headers = { 'content-encoding': 'gzip' };
  await rig.call('POST', '/v1/oauth/token', { headers, body: BYTES });
  expect(rig.requests).toMatchObject([{ body: BYTES, headers }]);
});

it.each([
  ['an absolute URL', (path: string) => `http://elsewhere.example${path}`],
  ['an absolute URL in capitals', (path: string) => `HTTPS://x:81${path}`],
])('A request whose target is %s is sent like one with the path', async (_what, targetOf) => {
  const path = `${GIVE}?a=%2f`;
  const head = `connection: close\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
  const response = await received(rig.rawRequest(head, { path: targetOf(path) }));
  expect(response).toMatch(/^HTTP\/1\.1 200 /);
  expect(rig.requests).toMatchObject([{ method: 'POST', url: path, body: Buffer.from(BODY) }]);
});

it.each(['/v1/%2e%2e/x', '/v1//x', '/v1/x/%2F', '/v1/app/token/operations/%31/give'])(
  'A request with the ambiguous path %s is refused',
  async (path) => {
    const response = await received(rig.rawRequest('connection: close', { path }));
    expect(response).toMatch(/^HTTP\/1\.1 404 .*"code":"not_found"/s);
    expect(rig.requests).toEqual([]);
  },
);

it.each([
  ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', true],
  ['00-00000000000000000000000000000000-b7ad6b7169203331-01', false],
  ['garbage', false],
])('A traceparent %s is passed on with its tracestate: %s', async (traceparent, isPassed) => {
  const trace = { traceparent, tracestate: 'vendor=1' };
  expect((await rig.give(trace)).status).toBe(200);
  const read = await rig.call('GET', READ, { headers: { 'tallyhook-key': rig.secret, ...trace } });
  expect(read.status).toBe(200);
  const expected = isPassed ? trace : {};
  for (const { headers } of rig.requests) {
    const { traceparent: parent, tracestate: state } = headers;
    expect({ ...(parent && { traceparent: parent }), ...(state && { tracestate: state }) }).toEqual(
      expected,
    );
  }
  expect(rig.requests).toHaveLength(2);
});
