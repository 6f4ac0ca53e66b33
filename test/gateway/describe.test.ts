/** What a request is: every write of the interface, where it goes, and what makes two the same. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  describe as describeRequest,
  fingerprintOf,
  hostOf,
  type Request,
  WRITES,
} from '../../src/gateway/routes.ts';
import { KINDS } from '../../src/operations/operations.ts';

const ALICE = '0xA11CE'.padEnd(42, '0');
const BOB = '0xB0B'.padEnd(42, '0');
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

function request(method: string, path: string, body = '', contentType?: string): Request {
  return { method, path, contentType, body: Buffer.from(body) };
}
const form = (values: Record<string, string>) => new URLSearchParams(values).toString();

const NFT = '/v1/chain/erc721/12';
const TOKEN = '/v1/app/token';
const pay = { fromAddr: ALICE, toAddr: BOB, amount: 10, feeAmount: 1, reasonType: 'r' };
/** Kind, method, path, body as the interface has it, the fields read, family and host. */
const ROWS: [string, string, string, object, object, string, string][] = [
  [
    'mint',
    'POST',
    `${NFT}/mint`,
    { toAddr: ALICE, tokenId: '7', tokenURI: 'u', metaData: '{}', extraData: '{"a":1}' },
    {
      contractId: 12n,
      tokenId: 7n,
      toAddr: ALICE,
      tokenUri: 'u',
      metaData: '{}',
      extraData: '{"a":1}',
    },
    'nft',
    'base',
  ],
  [
    'mint_sequential',
    'POST',
    `${NFT}/mint-sequential`,
    { toAddr: ALICE, tokenURI: 'u', tokenId: '7' },
    { contractId: 12n, toAddr: ALICE, tokenUri: 'u', metaData: null, extraData: null },
    'nft',
    'base',
  ],
  [
    'burn',
    'POST',
    `${NFT}/burn`,
    { tokenId: '7' },
    { contractId: 12n, tokenId: 7n },
    'nft',
    'base',
  ],
  [
    'set_extra_data',
    'PUT',
    `${NFT}/tokens/7/set-extra-data`,
    { extraData: '{}' },
    { contractId: 12n, tokenId: 7n, extraData: '{}' },
    'nft',
    'base',
  ],
  [
    'transfer_from',
    'POST',
    `${NFT}/transfer-from`,
    { fromAddr: ALICE, toAddr: BOB, tokenId: '7' },
    { contractId: 12n, tokenId: 7n, fromAddr: ALICE, toAddr: BOB },
    'nft',
    'base',
  ],
  [
    'give',
    'POST',
    `${TOKEN}/operations/3/give`,
    pay,
    { operationNo: 3n, fromAddr: null, toAddr: BOB, amount: 10n, feeAmount: null, reasonType: 'r' },
    'transaction',
    'tx',
  ],
  [
    'receive_from',
    'POST',
    `${TOKEN}/operations/receive-from`,
    pay,
    { fromAddr: ALICE, toAddr: null, amount: 10n, feeAmount: 1n, reasonType: 'r' },
    'transaction',
    'tx',
  ],
  [
    'transfer',
    'POST',
    `${TOKEN}/accounts/transfer`,
    pay,
    { fromAddr: ALICE, toAddr: BOB, amount: 10n, feeAmount: 1n, reasonType: 'r' },
    'transaction',
    'tx',
  ],
];

describe('A write', () => {
  it.each(ROWS)('Is %s: %s %s', (kind, method, path, values, fields, family, host) => {
    const [body, type] =
      family === 'nft'
        ? [form(values as Record<string, string>), FORM_TYPE]
        : [JSON.stringify(values), JSON_TYPE];
    const said = describeRequest(request(method, path, body, type));
    expect(said).toEqual({ what: 'write', host, kind, family, fields });
  });

  test('Of every kind but other has one row, and no request matches two', () => {
    expect(WRITES.map(({ kind }) => kind).toSorted()).toEqual(
      KINDS.filter((kind) => kind !== 'other').toSorted(),
    );
    for (const [, method, path] of ROWS) {
      const matching = WRITES.filter((row) => row.method === method && row.path.test(path));
      expect(matching).toHaveLength(1);
    }
  });

  it.each(ROWS)('Is the same with a slash at its end: %s', (kind, method, path, body) => {
    const text = path.startsWith(TOKEN)
      ? JSON.stringify(body)
      : form(body as Record<string, string>);
    const plain = describeRequest(request(method, path, text));
    expect(describeRequest(request(method, `${path}/`, text))).toEqual(plain);
    expect(plain).toMatchObject({ kind });
  });

  it.each([
    ['POST', `${TOKEN}/event-payouts/3`, 'tx'],
    ['POST', `${TOKEN}/operations/x/give`, 'tx'],
    ['POST', `${TOKEN}/operations/3/give//`, 'tx'],
    ['PUT', `${TOKEN}/operations/3/give`, 'tx'],
    ['DELETE', `${NFT}/tokens/7`, 'base'],
    ['PATCH', '/v1/something/new', 'base'],
    ['POST', `${NFT}/tokens`, 'base'],
  ])('That nobody has heard of is other: %s %s', (method, path, host) => {
    expect(describeRequest(request(method, path))).toEqual({
      what: 'write',
      host,
      kind: 'other',
      family: 'other',
      fields: {},
    });
  });

  it.each<[string, string | undefined, string]>([
    ['without a content type', undefined, JSON.stringify(pay)],
    ['of an odd content type', 'text/plain', JSON.stringify(pay)],
    ['after white space', undefined, `\n\t ${JSON.stringify(pay)}`],
    ['of a JSON dialect', 'application/vnd.api+json; charset=utf-8', JSON.stringify(pay)],
    ['with a byte order mark', JSON_TYPE, `\ufeff${JSON.stringify(pay)}`],
    ['with amounts as text', JSON_TYPE, JSON.stringify({ ...pay, amount: '10', feeAmount: '1' })],
    ['as a form', FORM_TYPE, form({ ...pay, amount: '10', feeAmount: '1' })],
  ])('Is read %s', (_how, type, body) => {
    const said = describeRequest(request('POST', `${TOKEN}/accounts/transfer`, body, type));
    expect(said).toMatchObject({ fields: { amount: 10n, feeAmount: 1n, toAddr: BOB } });
  });

  it.each<[string, string]>([
    ['no JSON', '{'],
    ['a list', '[1]'],
    ['nothing', ''],
    ['a fraction', '{"amount":1.5}'],
    ['more digits than anybody reads', `{"amount":${'9'.repeat(2_000)}}`],
    ['a number as text', '{"amount":"1e3"}'],
    ['an object', '{"amount":{}}'],
    ['bytes that are no text', '\xff\xfe'],
  ])('With %s is still a write: its amount is null, and the service judges it', (_what, body) => {
    const path = `${TOKEN}/accounts/transfer`;
    const said = describeRequest(request('POST', path, body, JSON_TYPE));
    expect(said).toMatchObject({ what: 'write', kind: 'transfer', fields: { amount: null } });
  });

  test('Keeps amounts of any size, and texts that a database takes', () => {
    const amount = 10n ** 60n + 1n;
    const body = `{"amount":${amount},"reasonType":"a\\u0000b","toAddr":"${'x'.repeat(3_999)}😀"}`;
    const said = describeRequest(request('POST', `${TOKEN}/accounts/transfer`, body, JSON_TYPE));
    const fields = said.what === 'write' ? said.fields : {};
    expect(fields).toMatchObject({ amount, reasonType: 'a\ufffdb' });
    // An address stands in indexes, whose entries are small.
    expect(fields.toAddr).toHaveLength(255);
    expect(fields.toAddr?.isWellFormed()).toBe(true);
  });

  test('Is never a reason to fail, whatever the bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array(),
        fc.constantFrom(...ROWS.map(([, method, path]) => [method, path])),
        fc.constantFrom(JSON_TYPE, FORM_TYPE, undefined),
        (body, [method = '', path = ''], contentType) => {
          const given = { method, path, contentType, body };
          expect(describeRequest(given).what).toBe('write');
          expect(fingerprintOf(given, '')).toMatch(/^[0-9a-f]{64}$/);
        },
      ),
    );
  });
});

describe('What is no write', () => {
  it.each([
    ['GET', `${NFT}/tokens`, { what: 'read', host: 'base' }],
    ['HEAD', `${NFT}/tokens/1`, { what: 'read', host: 'base' }],
    ['OPTIONS', `${TOKEN}/accounts/transfer`, { what: 'read', host: 'tx' }],
    ['GET', `${TOKEN}/account`, { what: 'read', host: 'base' }],
    ['GET', `${TOKEN}/operations/3/give`, { what: 'read', host: 'tx' }],
    ['POST', '/v1/oauth/token', { what: 'private', host: 'auth' }],
    ['GET', '/v1/oauth/check_token', { what: 'private', host: 'auth' }],
    ['DELETE', '/v1/oauth', { what: 'private', host: 'auth' }],
    ['GET', '/v1/system/maintenance', { what: 'private', host: 'auth' }],
  ])('%s %s is %j', (method, path, said) => {
    expect(describeRequest(request(method, path))).toEqual(said);
  });

  it.each([
    ['/v1/oauth', 'auth'],
    ['/v1/oauthx', 'base'],
    ['/v1/system/x', 'auth'],
    ['/v1/app/token/account', 'base'],
    ['/v1/app/token/accounts/transfer', 'tx'],
    ['/v1/app/token/account/x', 'tx'],
    ['/v1/app/tokens', 'base'],
    ['/v1/chain/erc721/1/mint', 'base'],
    ['/v1/else', 'base'],
  ])('%s belongs to the %s host', (path, host) => {
    expect(hostOf(path)).toBe(host);
  });
});

describe('A fingerprint', () => {
  const of = (body: string, type: string | undefined = JSON_TYPE, query = '', path = '/v1/x') =>
    fingerprintOf(request('POST', path, body, type), query);

  it.each<[string, string, string]>([
    ['order of members', '{"a":1,"b":[{"c":2,"d":3}]}', '{"b":[{"d":3,"c":2}],"a":1}'],
    ['white space', '{"a":1}', ' {\n "a" : 1 }\n'],
    ['spelling of a text', '{"a":"é"}', '{"a":"\\u00e9"}'],
  ])('Does not depend on %s', (_what, one, other) => {
    expect(of(one)).toBe(of(other));
  });

  it.each<[string, string, string]>([
    ['a value', '{"a":1}', '{"a":2}'],
    ['a value beyond 2^53', '{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['a type', '{"a":1}', '{"a":"1"}'],
    ['a member more', '{"a":1}', '{"a":1,"b":null}'],
    ['the order of a list', '{"a":[1,2]}', '{"a":[2,1]}'],
    ['anything in what is no JSON', '{"a":1', '{"a": 1'],
  ])('Depends on %s', (_what, one, other) => {
    expect(of(one)).not.toBe(of(other));
  });

  test('Depends on method, path and query, and on every byte of a form', () => {
    const all = [
      of('{}'),
      of('{}', JSON_TYPE, '?a=1'),
      of('{}', JSON_TYPE, '', '/v1/y'),
      fingerprintOf(request('PUT', '/v1/x', '{}', JSON_TYPE), ''),
      of('a=1&b=2', FORM_TYPE),
      of('b=2&a=1', FORM_TYPE),
      of('', undefined),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  test('Of a body nested beyond the stack is that of its bytes', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    expect(of(deep)).toMatch(/^[0-9a-f]{64}$/);
    expect(of(deep)).not.toBe(of(`${deep} `));
  });
});
