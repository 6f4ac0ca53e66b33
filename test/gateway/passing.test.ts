/** What the service says is passed on to the byte, and what an app says reaches it as it was. */
import { connect as connectSocket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { BODY, DONE, GIVE, openRig, type Reply, type Rig } from './gateway-house.ts';

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db);
});
beforeEach(() => {
  rig.asked.length = 0;
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const JSON_TYPE: [string, string] = ['content-type', 'application/json'];
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
type Deps = Exclude<Reply, string>;
let tokens = 1;

const REPLIES: [string, Deps][] = [
  ['success', { status: 200, headers: [JSON_TYPE], body: '{"status":200, "data":{"a":1.0}}' }],
  ['an error under 200', { status: 200, headers: [JSON_TYPE], body: '{"status":404,"error":[]}' }],
  ['a complaint', { status: 406, headers: [JSON_TYPE], body: '{"status":"406","error":{}}' }],
  ['not found', { status: 404, headers: [['content-type', 'text/html']], body: '<p>no</p>' }],
  ['a failure', { status: 500, headers: [JSON_TYPE], body: '{"status":"500"}' }],
  ['no body', { status: 200, headers: [JSON_TYPE] }],
  ['no content type', { status: 200, body: '{"status":200,"data":{}}' }],
  ['any bytes', { status: 200, headers: [['content-type', 'image/png']], body: BYTES }],
  ['no content', { status: 204 }],
  ['not modified', { status: 304 }],
  ['a status of its own', { status: 599, headers: [JSON_TYPE], body: '{}' }],
  [
    'a charset of its own',
    { status: 200, headers: [['Content-Type', 'text/plain;CHARSET="x"']], body: 'x' },
  ],
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
    'who may enter',
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

/** The names of an answer's headers that are not of the connection. */
const OWN = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding']);

function expectPassed(answered: Awaited<ReturnType<Rig['call']>>, { status, headers, body }: Deps) {
  expect(answered.status).toBe(status);
  expect(answered.bytes).toEqual(Buffer.from(body ?? ''));
  const told = Object.entries(answered.headers)
    .filter(([name]) => !OWN.has(name) && !name.startsWith('tallyhook-'))
    .flatMap(([name, value]) => [value ?? ''].flat().map((one) => [name, one]));
  const said = (headers ?? []).map(([name, value]) => [name.toLowerCase(), value]);
  expect(told.toSorted()).toEqual(said.toSorted());
}

describe('An answer', () => {
  it.each(REPLIES)('Of a read passes: %s', async (_what, reply) => {
    rig.answer(() => ({ ...reply, headers: [...(reply.headers ?? []), ['x-internal', 'no']] }));
    expectPassed(await rig.call('GET', '/v1/chain/erc721/1/tokens'), reply);
  });

  it.each(REPLIES)('Of authorization passes: %s', async (_what, reply) => {
    rig.answer(() => reply);
    expectPassed(await rig.call('GET', '/v1/oauth/authorize?a=1', { headers: {} }), reply);
  });

  it.each(REPLIES)('Of a write passes, and its operation is named: %s', async (_what, reply) => {
    rig.answer(() => reply);
    // Each its own token: a second write on one whose outcome is open would wait.
    const body = `tokenId=${tokens++}`;
    const answered = await rig.call('POST', '/v1/chain/erc721/1/burn', { body });
    expectPassed(answered, reply);
    expect(answered.headers['tallyhook-operation']).toMatch(/^op_/);
    expect(answered.headers['tallyhook-outcome']).toMatch(/^(accepted|rejected|unknown)$/);
  });

  test('Of HEAD has the headers and no length that nobody said', async () => {
    rig.answer(() => ({ status: 200, headers: [JSON_TYPE, ['set-cookie', 'a=1']] }));
    const answered = await rig.call('HEAD', '/v1/chain/erc721/1/tokens');
    expect(answered.status).toBe(200);
    expect(answered.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(answered.headers['content-length']).toBeUndefined();
    expect(rig.asked[0]?.method).toBe('HEAD');
  });
});

describe('A request', () => {
  test('Reaches the service as it was, with the managed token', async () => {
    rig.answer(() => DONE);
    const path = `${GIVE}?a=%2F%41&b=c+d&&e=%22|`;
    const body = Buffer.concat([Buffer.from(BODY), BYTES]);
    const headers = {
      authorization: `Bearer ${rig.secret}`,
      'content-type': 'application/json;charset=weird',
      accept: 'text/x',
      'accept-encoding': 'gzip, br',
      'x-forwarded-for': '10.0.0.1',
      'tallyhook-reference': 'order 7',
      'idempotency-key': 'once',
    };
    await rig.call('POST', path, { headers, body });
    expect(rig.asked).toHaveLength(1);
    expect(rig.asked[0]).toMatchObject({ method: 'POST', url: path, body });
    expect(rig.asked[0]?.headers).toMatchObject({
      authorization: 'Bearer managed',
      'content-type': 'application/json;charset=weird',
      accept: 'text/x',
      'accept-encoding': 'identity',
    });
    const sent = JSON.stringify(rig.asked[0]?.headers);
    expect(sent).not.toMatch(/thk_|idempotency|tallyhook|forwarded/i);
  });

  test('Of a read is a look; of authorization it is not, and is never logged', async () => {
    rig.answer(() => ({ status: 200, headers: [JSON_TYPE], body: '{"status":200}' }));
    rig.observed.length = 0;
    await rig.call('GET', '/v1/app/token/account?addr=x');
    await rig.call('GET', '/v1/oauth/check_token?token=hush-token-1', { headers: {} });
    await rig.call('POST', '/v1/oauth/token', {
      headers: { authorization: 'Basic aHVzaDpodXNo' },
      body: 'grant_type=refresh_token&refresh_token=hush-token-2',
    });
    expect(rig.observed).toMatchObject([
      { path: '/v1/app/token/account', query: '?addr=x', status: 200 },
    ]);
    expect(rig.asked.at(-1)?.headers.authorization).toBe('Basic aHVzaDpodXNo');
    expect(rig.logged()).not.toMatch(/hush|aHVzaDpodXNo/);
    const rows = await database.owner.sql`
      select id from tallyhook.operations where path like '/v1/oauth%'`;
    expect(rows).toEqual([]);
  });

  test('With a path that two readers would read differently goes nowhere', async () => {
    const paths = ['/v1/%2e%2e/x', '/v1//x', '/v1/x/%2F', '/v1/app/token/operations/%31/give'];
    for (const path of paths) {
      const socket = connectSocket(Number(new URL(rig.url).port), '127.0.0.1');
      const key = `authorization: Bearer ${rig.secret}`;
      socket.end(`POST ${path} HTTP/1.1\r\nhost: x\r\n${key}\r\nconnection: close\r\n\r\n`);
      const told = (await socket.toArray()).join('');
      expect(told).toMatch(/^HTTP\/1\.1 404 /);
      expect(told).toContain('"code":"not_found"');
    }
    expect(rig.asked).toEqual([]);
  });
});
