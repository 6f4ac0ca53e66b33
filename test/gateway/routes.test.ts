import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  fieldsOf,
  fingerprintOf,
  type Request,
  type Route,
  routeOf,
  WRITES,
} from '../../src/gateway/routes.ts';
import { KINDS } from '../../src/resources/operations/operation.ts';

const ALICE = '0xA11CE'.padEnd(42, '0');
const BOB = '0xB0B'.padEnd(42, '0');
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

const request = (method: string, path: string, body = '', contentType?: string): Request => ({
  method,
  path,
  query: '',
  contentType,
  headers: [],
  body: Buffer.from(body),
});
const form = (values: object) => new URLSearchParams(Object.entries(values)).toString();

const NFT = '/v1/chain/erc721/12';
const TOKEN = '/v1/app/token';
const TRANSFER = `${TOKEN}/accounts/transfer`;
const pay = { fromAddr: ALICE, toAddr: BOB, amount: 10, feeAmount: 1, reasonType: 'r' };
const paid = { ...pay, amount: 10n, feeAmount: 1n };
const minted = { contractId: 12n, toAddr: ALICE, tokenUri: 'u', metaData: null, extraData: null };
const token = { contractId: 12n, tokenId: 7n };
/** Kind, method, path, body as the interface documents it, parsed fields. */
const ROWS: [string, string, string, object, object][] = [
  [
    'mint',
    'POST',
    `${NFT}/mint`,
    { toAddr: ALICE, tokenId: '7', tokenURI: 'u', metaData: '{}', extraData: '{"a":1}' },
    { ...minted, tokenId: 7n, metaData: '{}', extraData: '{"a":1}' },
  ],
  [
    'mint_sequential',
    'POST',
    `${NFT}/mint-sequential`,
    { toAddr: ALICE, tokenURI: 'u', tokenId: '7' },
    minted,
  ],
  ['burn', 'POST', `${NFT}/burn`, { tokenId: '7' }, token],
  [
    'set_extra_data',
    'PUT',
    `${NFT}/tokens/7/set-extra-data`,
    { extraData: '{}' },
    { ...token, extraData: '{}' },
  ],
  [
    'transfer_from',
    'POST',
    `${NFT}/transfer-from`,
    { fromAddr: ALICE, toAddr: BOB, tokenId: '7' },
    { ...token, fromAddr: ALICE, toAddr: BOB },
  ],
  [
    'give',
    'POST',
    `${TOKEN}/operations/3/give`,
    pay,
    { ...paid, operationNo: 3n, fromAddr: null, feeAmount: null },
  ],
  ['receive_from', 'POST', `${TOKEN}/operations/receive-from`, pay, { ...paid, toAddr: null }],
  ['transfer', 'POST', TRANSFER, pay, paid],
];

it.each(ROWS)(
  'A write is a %s: %s %s, also with a trailing slash',
  (kind, method, path, values, fields) => {
    const isNft = path.startsWith(NFT);
    const [body, type] = isNft ? [form(values), FORM_TYPE] : [JSON.stringify(values), JSON_TYPE];
    const [family, host] = isNft ? ['nft', 'base'] : ['transaction', 'tx'];
    for (const spelling of [path, `${path}/`]) {
      expect(routeOf(method, spelling)).toEqual({ type: 'write', host, kind, family });
      expect(fieldsOf(request(method, spelling, body, type))).toEqual(fields);
    }
  },
);

it('A write of every kind but other has one row, and matches no other row', () => {
  expect(WRITES.map(({ kind }) => kind).toSorted()).toEqual(
    KINDS.filter((kind) => kind !== 'other').toSorted(),
  );
  for (const [, method, path] of ROWS) {
    const matching = WRITES.filter((row) => row.method === method && row.path.test(path));
    expect(matching).toHaveLength(1);
  }
});

it.each([
  ['POST', `${TOKEN}/event-payouts/3`, 'tx'],
  ['POST', `${TOKEN}/operations/x/give`, 'tx'],
  ['POST', `${TOKEN}/operations/3/give//`, 'tx'],
  ['PUT', `${TOKEN}/operations/3/give`, 'tx'],
  ['DELETE', `${NFT}/tokens/7`, 'base'],
  ['PATCH', '/v1/something/new', 'base'],
  ['POST', `${NFT}/tokens`, 'base'],
])('A write that the interface does not document is other: %s %s', (method, path, host) => {
  expect(routeOf(method, path)).toEqual({ type: 'write', host, kind: 'other', family: 'other' });
  expect(fieldsOf(request(method, path))).toEqual({});
});

it.each<[string, string | undefined, string]>([
  ['without a content type', undefined, JSON.stringify(pay)],
  ['of an unusual content type', 'text/plain', JSON.stringify(pay)],
  ['after white space', undefined, `\n\t ${JSON.stringify(pay)}`],
  ['of a JSON dialect', 'application/vnd.api+json; charset=utf-8', JSON.stringify(pay)],
  ['with a byte order mark', JSON_TYPE, `\ufeff${JSON.stringify(pay)}`],
  ['with amounts as text', JSON_TYPE, JSON.stringify({ ...pay, amount: '10', feeAmount: '1' })],
  ['as a form', FORM_TYPE, form({ ...pay, amount: '10', feeAmount: '1' })],
])('A write is parsed %s', (_how, type, body) => {
  expect(fieldsOf(request('POST', TRANSFER, body, type))).toEqual(paid);
});

it.each<[string, string]>([
  ['invalid JSON', '{'],
  ['a list', '[1]'],
  ['no body', ''],
  ['a fraction', '{"amount":1.5}'],
  ['2,000 digits', `{"amount":${'9'.repeat(2_000)}}`],
  ['an exponent', '{"amount":"1e3"}'],
  ['an object', '{"amount":{}}'],
  ['invalid UTF-8', '\xff\xfe'],
])('A write with %s has a null amount', (_what, body) => {
  expect(fieldsOf(request('POST', TRANSFER, body, JSON_TYPE))).toMatchObject({ amount: null });
});

it('A write has amounts of any size, and only text that Postgres can store and index', () => {
  const amount = 10n ** 60n + 1n;
  const body = `{"amount":${amount},"reasonType":"a\\u0000b","toAddr":"${'x'.repeat(3_999)}😀"}`;
  const fields = fieldsOf(request('POST', TRANSFER, body, JSON_TYPE));
  expect(fields).toMatchObject({ amount, reasonType: 'a\ufffdb' });
  expect(fields.toAddr).toHaveLength(255);
  expect(fields.toAddr?.isWellFormed()).toBe(true);
});

it('Parsing a write never throws, with any body', () => {
  fc.assert(
    fc.property(
      fc.uint8Array(),
      fc.constantFrom(...ROWS),
      fc.constantFrom(JSON_TYPE, FORM_TYPE, undefined),
      (body, [, method, path], contentType) => {
        const input = { ...request(method, path), contentType, body };
        expect(fieldsOf(input)).toBeTypeOf('object');
        expect(fingerprintOf(input)).toMatch(/^[\w-]{43}$/);
      },
    ),
  );
});

it.each<[string, string, Route['type'], string]>([
  ['GET', `${NFT}/tokens`, 'read', 'base'],
  ['HEAD', `${NFT}/tokens/1`, 'read', 'base'],
  ['OPTIONS', TRANSFER, 'read', 'tx'],
  ['GET', `${TOKEN}/account`, 'read', 'base'],
  ['GET', `${TOKEN}/account/x`, 'read', 'tx'],
  ['GET', `${TOKEN}/operations/3/give`, 'read', 'tx'],
  ['GET', '/v1/app/tokens', 'read', 'base'],
  ['GET', '/v1/oauthx', 'read', 'base'],
  ['GET', '/v1/else', 'read', 'base'],
  ['POST', '/v1/oauth/token', 'unauthenticated', 'auth'],
  ['GET', '/v1/oauth/check_token', 'unauthenticated', 'auth'],
  ['DELETE', '/v1/oauth', 'unauthenticated', 'auth'],
  ['GET', '/v1/system/maintenance', 'unauthenticated', 'auth'],
  ['POST', '/v1/system/x', 'unauthenticated', 'auth'],
])('A route of %s %s has the type %s and the host %s', (method, path, type, host) => {
  expect(routeOf(method, path)).toEqual({ type, host });
});

const of = (body: string, contentType: string | undefined = JSON_TYPE, more = {}) =>
  fingerprintOf({ ...request('POST', '/v1/x', body, contentType), ...more });

it.each<[string, string, string]>([
  ['the order of members', '{"a":1,"b":[{"c":2,"d":3}]}', '{"b":[{"d":3,"c":2}],"a":1}'],
  ['white space', '{"a":1}', ' {\n "a" : 1 }\n'],
  ['escapes in a text', '{"a":"é"}', '{"a":"\\u00e9"}'],
])('A fingerprint does not depend on %s', (_what, one, other) => {
  expect(of(one)).toBe(of(other));
});

it.each<[string, string, string]>([
  ['a value', '{"a":1}', '{"a":2}'],
  ['a value beyond 2^53', '{"a":9007199254740993}', '{"a":9007199254740992}'],
  ['a type', '{"a":1}', '{"a":"1"}'],
  ['the presence of a member', '{"a":1}', '{"a":1,"b":null}'],
  ['the order of a list', '{"a":[1,2]}', '{"a":[2,1]}'],
  ['every byte of invalid JSON', '{"a":1', '{"a": 1'],
])('A fingerprint depends on %s', (_what, one, other) => {
  expect(of(one)).not.toBe(of(other));
});

it('A fingerprint does not depend on the case of percent-encodings', () => {
  const lower = { path: '/v1/%c3%a9', query: '?a=%2f' };
  const upper = { path: '/v1/%C3%A9', query: '?a=%2F' };
  expect(of('{}', JSON_TYPE, lower)).toBe(of('{}', JSON_TYPE, upper));
  expect(of('{}', JSON_TYPE, { ...lower, query: '?a=%2g' })).not.toBe(of('{}', JSON_TYPE, lower));
});

it('A fingerprint depends on method, path and query, and on every byte of a form', () => {
  const all = [
    of('{}'),
    of('{}', JSON_TYPE, { query: '?a=1' }),
    of('{}', JSON_TYPE, { path: '/v1/y' }),
    of('{}', JSON_TYPE, { method: 'PUT' }),
    of('a=1&b=2', FORM_TYPE),
    of('b=2&a=1', FORM_TYPE),
    of('', undefined),
  ];
  expect(new Set(all).size).toBe(all.length);
});

it('A fingerprint of a body that is nested too deeply for the stack is that of its bytes', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  expect(of(deep)).toMatch(/^[\w-]{43}$/);
  expect(of(deep)).not.toBe(of(`${deep} `));
});
