import { expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { BODY, GIVE, READ, setUpGateway } from './rig.ts';

const { rig, open } = await setUpGateway();

const UNKNOWN_KEY = `thk_${'x'.repeat(43)}`;
const TRANSACTION_401 = { status: '406', error: { code: '401', message: expect.any(String) } };
const NFT_401 = {
  status: 401,
  error: [{ message: expect.any(String), field: 'Authorization', validation: 'required' }],
};

it.each([
  ['GET', READ, 406, TRANSACTION_401],
  ['POST', GIVE, 406, TRANSACTION_401],
  ['POST', '/v1/chain/erc721/1/mint', 200, NFT_401],
  ['GET', '/v1/chain/erc721/1/tokens', 200, NFT_401],
  ['POST', '/v1/anything', 200, NFT_401],
])(
  "A request without a valid key gets the service's own 401: %s %s",
  async (method, path, status, json) => {
    const invalid: Record<string, string>[] = [
      {},
      { authorization: 'Bearer of-the-service' },
      { authorization: `Bearer ${UNKNOWN_KEY}` },
      { authorization: `Basic ${rig.secret}` },
      { 'tallyhook-key': UNKNOWN_KEY },
      { 'tallyhook-key': 'x', authorization: 'Bearer of-the-service' },
    ];
    for (const headers of invalid) {
      const response = await rig.call(method, path, { headers });
      expect([response.status, response.json]).toEqual([status, json]);
      expect(response.headers['content-type']).toBe('application/json');
    }
    expect(rig.requests).toEqual([]);
  },
);

it.each<[string, (secret: string) => Record<string, string>, string]>([
  ['a key', (secret) => ({ authorization: `Bearer ${secret}` }), 'Bearer managed'],
  ['a key in lower case', (secret) => ({ authorization: `bearer  ${secret}` }), 'Bearer managed'],
  ['a key in Tallyhook-Key', (secret) => ({ 'tallyhook-key': secret }), 'Bearer managed'],
  [
    'a key beside its own token',
    (secret) => ({ 'tallyhook-key': secret, authorization: 'Bearer mine' }),
    'Bearer mine',
  ],
])(
  'A request with %s is sent with its token, and never with the key',
  async (_what, headersOf, sent) => {
    const headers = headersOf(rig.secret);
    await rig.call('GET', READ, { headers });
    await rig.call('POST', GIVE, { headers, body: BODY });
    expect(rig.requests.map((request) => request.headers.authorization)).toEqual([sent, sent]);
    expect(JSON.stringify(rig.requests.map((request) => request.headers))).not.toContain('thk_');
  },
);

it.each([
  [undefined, undefined],
  ['Basic abc', 'Basic abc'],
  ['Bearer user', 'Bearer user'],
  [`Bearer ${rig.secret}`, undefined],
])(
  'A request for authorization or maintenance needs no key; %j is sent as %j',
  async (own, sent) => {
    const headers: Record<string, string> = own ? { authorization: own } : {};
    await rig.call('GET', '/v1/system/maintenance', { headers });
    expect(rig.requests.map((request) => request.headers.authorization)).toEqual([sent]);
  },
);

it('A request without the scope gateway is refused and not sent', async () => {
  const input = { name: 'reader', owner: 'team', scopes: ['read', 'manage'] as const };
  const { secret } = await rig.keys.create(input);
  const headers = { authorization: `Bearer ${secret}` };
  for (const response of [await rig.call('GET', READ, { headers }), await rig.give(headers)])
    expect(response).toMatchObject({ status: 403, json: { code: 'forbidden' } });
  expect(rig.requests).toEqual([]);
});

it('A request with the method TRACE is refused, because its answer would repeat the managed token', async () => {
  const response = await rig.call('TRACE', '/v1/anything');
  expect(response).toMatchObject({ status: 405, json: { code: 'method_not_allowed' } });
  expect(rig.requests).toEqual([]);
});

it('A request gets 503 while the database is unavailable, and its key is not logged', async () => {
  const keysDb = connect({ url: 'postgres://postgres@127.0.0.1:1/none', max: 1 });
  const unavailable = await open({ keysDb });
  const headers = { authorization: `Bearer ${UNKNOWN_KEY}` };
  const response = await unavailable.call('GET', READ, { headers });
  expect(response).toMatchObject({ status: 503, json: { code: 'database_unavailable' } });
  expect(unavailable.logged.text).not.toMatch(/xxxx|Failed query/);
  await keysDb.end(0);
});
