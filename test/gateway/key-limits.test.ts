import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkMembers } from '../../src/gateway/key-limits.ts';
import { membersOf, type Request } from '../../src/gateway/routes.ts';
import type { Failure } from '../../src/kernel/errors.ts';
import type { KeyLimits } from '../../src/resources/admin/key.ts';
import { GIVE, READ, setUpGateway } from './rig.ts';

const { rig, sql } = await setUpGateway();

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const TRANSFER = '/v1/app/token/accounts/transfer';
const request = (body: string | Buffer, contentType?: string): Request => ({
  method: 'POST',
  path: TRANSFER,
  query: '',
  headers: [],
  contentType,
  body: Buffer.from(body),
});
const both = '{"amount":1,"reasonType":"x&amount=99&toAddr=y"}';

const LONE_SURROGATE = '\\ud800mount';

/** `undefined`: allowed. Else the part of the request and the member that the refusal names. */
type Verdict = [part: string, member?: string] | undefined;

it.each<[string, string | Buffer, string | undefined, Verdict]>([
  ['the documented members', '{"fromAddr":"x","amount":1}', JSON_TYPE, undefined],
  ['a name with an escape', '{"\\u0061mount":1}', JSON_TYPE, undefined],
  ['a repeated name', '{"amount":1,"amount":2}', JSON_TYPE, ['body', 'amount']],
  ['a name repeated as an escape', '{"amount":1,"\\u0061mount":2}', JSON_TYPE, ['body', 'amount']],
  ['a name in other case', '{"amount":1,"AMOUNT":500}', JSON_TYPE, ['body', 'AMOUNT']],
  ['only a name in other case', '{"Amount":1}', JSON_TYPE, ['body', 'Amount']],
  ['a long s', '{"reaſonType":"r"}', JSON_TYPE, ['body', 'reaſonType']],
  ['an escaped Kelvin sign', '{"to\\u212aenId":1}', JSON_TYPE, ['body', 'to\u212aenId']],
  ['a dotless i', '{"tokenıd":1}', JSON_TYPE, ['body', 'tokenıd']],
  ['a full-width letter', '{"\uff41mount":1}', JSON_TYPE, ['body', '\uff41mount']],
  ['a space in a name', '{" amount":1}', JSON_TYPE, ['body', ' amount']],
  ['NUL in a name', '{"amount\\u0000":1}', JSON_TYPE, ['body', 'amount\0']],
  ['half a character', `{"${LONE_SURROGATE}":1}`, JSON_TYPE, ['body', '\ufffdmount']],
  ['a prototype', '{"__proto__":{"amount":9}}', JSON_TYPE, ['body', '__proto__']],
  ['another name', '{"amount":1,"currency":"x"}', JSON_TYPE, ['body', 'currency']],
  ['an object', '{"toAddr":{"amount":2},"amount":1}', JSON_TYPE, ['body', 'toAddr']],
  ['a list', '{"amount":[1,500]}', JSON_TYPE, ['body', 'amount']],
  ['names in a text', '{"reasonType":"\\",\\"amount\\":1}{[:"}', JSON_TYPE, undefined],
  ['JSON that is cut off', '{"amount":1', JSON_TYPE, ['body']],
  ['two documents', '{"amount":1}{"amount":2}', JSON_TYPE, ['body']],
  ['a document in a list', '[{"amount":1}]', JSON_TYPE, ['body']],
  ['a text as document', '"amount=1"', FORM, ['body']],
  ['a byte order mark', '\ufeff{"amount":1}', JSON_TYPE, ['body']],
  [
    'bytes that are not UTF-8',
    Buffer.from('{"amount":1,"toAddr":"\xff"}', 'latin1'),
    JSON_TYPE,
    ['body'],
  ],
  [
    'another charset',
    '{"amount":1}',
    'application/json; charset=utf-7',
    ['headers', 'content-type'],
  ],
  ['compressed bytes', gzipSync('{"amount":1}'), JSON_TYPE, ['body']],
  ['a JSON dialect', both, 'application/vnd.api+json; charset=UTF-8', undefined],
  ['a form in its JSON', both, JSON_TYPE, undefined],
  ['JSON and a form without a type', both, undefined, ['headers', 'content-type']],
  ['JSON and a form as a form', both, FORM, ['headers', 'content-type']],
  ['JSON and a form as a strange form', both, `${FORM}; a=json`, ['headers', 'content-type']],
  [
    'JSON and a form behind spaces',
    `${' '.repeat(80)}${both}`,
    undefined,
    ['headers', 'content-type'],
  ],
  ['JSON under the type of a form', '{"amount":1,"reasonType":"r"}', FORM, undefined],
  ['JSON under the type of a text', '{"amount":1}', 'text/plain;charset=UTF-8', undefined],
  ['no body', '', undefined, undefined],
  ['a form', 'amount=1&toAddr=x', FORM, undefined],
  ['a form without a type', 'amount=1&&toAddr=x&', undefined, undefined],
  ['a form with an encoded name', '%61mount=1', FORM, undefined],
  ['a form as text', 'amount=1&toAddr=x', 'text/plain', ['headers', 'content-type']],
  ['a form in parts', 'amount=1', 'multipart/form-data; boundary=b', ['headers', 'content-type']],
  ['a repeated value', 'amount=1&amount=2', FORM, ['body', 'amount']],
  ['a value repeated with encoding', 'amount=1&%61mount=2', FORM, ['body', 'amount']],
  ['a form in other case', 'amount=1&AMOUNT=2', FORM, ['body', 'AMOUNT']],
  ['an encoded long s', 'rea%C5%BFonType=r', FORM, ['body', 'reaſonType']],
  ['a list in a form', 'amount[]=5', FORM, ['body', 'amount[]']],
  ['an encoded list in a form', 'amount%5B%5D=5', FORM, ['body', 'amount[]']],
  ['a member of a member', 'amount.value=5', FORM, ['body', 'amount.value']],
  ['a semicolon', 'reasonType=r;amount=5', FORM, ['body', 'reasonType']],
  ['an encoded semicolon', 'reasonType=r%3Bamount=5', FORM, undefined],
  ['a plus sign before a name', '+amount=5', FORM, ['body', ' amount']],
  ['a plus sign after a name', 'amount+=5', FORM, ['body', 'amount ']],
  ['NUL in an encoded name', 'amount%00=5', FORM, ['body', 'amount\0']],
  ['a letter of two bytes', '%C1%A1mount=5', FORM, ['body', '\ufffd\ufffdmount']],
  ['a name encoded twice', '%2561mount=5', FORM, ['body', '%61mount']],
  ['a malformed escape', '%zzamount=5', FORM, ['body', '%zzamount']],
  ['a question mark', '?amount=5', FORM, ['body', '?amount']],
  ['another method', 'amount=1&_method=PUT', FORM, ['body', '_method']],
])(
  'A write of a limited key with %s is allowed, or refused by name',
  (_what, body, type, verdict) => {
    expect(verdictOf(request(body, type))).toEqual(verdict);
  },
);

it.each<[string, Partial<Request>, Verdict]>([
  ['an empty query', { query: '?' }, undefined],
  ['a query', { query: '?x=1' }, ['query', 'x']],
  ['an amount in its query', { query: '?amount=99' }, ['query', 'amount']],
  ['an encoded name in its query', { query: '?%41MOUNT[]=9' }, ['query', 'AMOUNT[]']],
  ['a semicolon in its query', { query: '?;amount=99' }, ['query', ';amount']],
])(
  'A write of a limited key with %s beside its body is allowed, or refused by name',
  (_what, more, verdict) => {
    expect(verdictOf({ ...request('{"amount":1}', JSON_TYPE), ...more })).toEqual(verdict);
  },
);

/** Section 4 of the interface. */
const DOCUMENTED: Record<string, [method: string, path: string, members: string]> = {
  mint: ['POST', '/v1/chain/erc721/1/mint', 'toAddr tokenId tokenURI metaData extraData'],
  mint_sequential: [
    'POST',
    '/v1/chain/erc721/1/mint-sequential',
    'toAddr tokenURI metaData extraData',
  ],
  burn: ['POST', '/v1/chain/erc721/1/burn', 'tokenId'],
  set_extra_data: ['PUT', '/v1/chain/erc721/1/tokens/2/set-extra-data', 'extraData'],
  transfer_from: ['POST', '/v1/chain/erc721/1/transfer-from', 'fromAddr toAddr tokenId'],
  give: ['POST', GIVE, 'toAddr amount reasonType'],
  receive_from: [
    'POST',
    '/v1/app/token/operations/receive-from',
    'fromAddr amount feeAmount reasonType',
  ],
  transfer: ['POST', TRANSFER, 'fromAddr toAddr amount feeAmount reasonType'],
};

it.each(Object.entries(DOCUMENTED))(
  'The members of a %s are those that the interface documents',
  (_kind, [method, path, members]) => {
    expect(membersOf({ ...request(''), method, path })).toEqual(members.split(' '));
  },
);

it('A body in which every case of every letter is tried passes only as it is documented', () => {
  const names = DOCUMENTED.transfer?.[2].split(' ') ?? [];
  const spelled = fc
    .constantFrom(...names)
    .chain((name) =>
      fc
        .tuple(
          ...[...name].map((c) =>
            fc.constantFrom(c, c.toUpperCase(), c.toLowerCase(), ...(FOLDED[c] ?? [])),
          ),
        )
        .map((letters) => letters.join('')),
    );
  fc.assert(
    fc.property(fc.array(spelled, { maxLength: 6 }), fc.boolean(), (sent, asForm) => {
      const allowed =
        new Set(sent).size === sent.length && sent.every((name) => names.includes(name));
      const body = asForm
        ? sent.map((name) => `${encodeURIComponent(name)}=1`).join('&')
        : `{${sent.map((name) => `${JSON.stringify(name)}:1`).join(',')}}`;
      const verdict = verdictOf(request(body, asForm ? FORM : JSON_TYPE));
      expect(verdict === undefined).toBe(allowed);
    }),
  );
});
/** Letters that are equal to a letter of ASCII without case. */
const FOLDED: Record<string, string[]> = { s: ['ſ'], k: ['\u212a'], i: ['ı', 'İ'] };

function verdictOf(sent: Request): Verdict {
  try {
    checkMembers(sent, membersOf(sent) ?? []);
    return undefined;
  } catch (error) {
    const { code, members } = error as Failure;
    expect(code).toBe('member_not_allowed');
    const { part, member } = members as { part: string; member?: string };
    return member === undefined ? [part] : [part, member];
  }
}

const TO = '0xA11CE'.padEnd(42, '0');
const MAX_9 = { amount_per_call: '9' };
const JSON_HEAD = { 'content-type': JSON_TYPE };
const gift = (amount: number | string) => `{"toAddr":"${TO}","amount":${amount},"reasonType":"r"}`;
const move = (amount: number, fee: number) =>
  JSON.stringify({ fromAddr: TO, toAddr: TO, amount, feeAmount: fee, reasonType: 'r' });
const HIDDEN = `${' '.repeat(70)}${gift('99,"x":"&amount=1&"')}`;

let owners = 0;
async function keyWith(limits: KeyLimits | undefined, owner = `owner-${owners++}`) {
  const scopes = ['gateway'] as const;
  const { secret } = await rig.keys.create({ name: 'app', owner, scopes, limits });
  const authorization = `Bearer ${secret}`;
  const send = (path: string, body: string, headers: object = {}) =>
    rig.call('POST', path, { headers: { authorization, ...headers }, body });
  return { owner, send };
}

it.each<[string, keyof KeyLimits, KeyLimits, string, string]>([
  ['of another kind', 'kinds', { kinds: ['transfer'] }, GIVE, gift(1)],
  ['of an unknown kind', 'kinds', { kinds: ['give'] }, '/v1/app/token/events/1', '{}'],
  ['of another operator', 'operators', { operators: ['2'] }, GIVE, gift(1)],
  ['with an amount above the limit', 'amount_per_call', MAX_9, GIVE, gift(10)],
  ['with amount and fee above the limit', 'amount_per_call', MAX_9, TRANSFER, move(9, 1)],
  ['without an amount', 'amount_per_call', MAX_9, GIVE, '{"toAddr":"x"}'],
  ['with a fraction', 'amount_per_call', MAX_9, GIVE, gift('1.5')],
  ['above the limit of a day', 'amount_per_day', { amount_per_day: '9' }, GIVE, gift(10)],
])(
  'A write %s is refused by the limits of its key and not recorded',
  async (_what, limit, limits, path, body) => {
    const { owner, send } = await keyWith(limits);
    const response = await send(path, body);
    expect(response).toMatchObject({ status: 403, json: { code: 'key_limit', limit } });
    expect(response.headers['content-type']).toBe('application/problem+json');
    const rows = await sql`select id from tallyhook.operations where owner = ${owner}`;
    expect([rows.length, rig.requests.length]).toEqual([0, 0]);
  },
);

it.each<[string, string, string, string, object?]>([
  ['with two amounts', 'amount', GIVE, gift('1,"amount":9')],
  ['with an amount in capitals', 'AMOUNT', GIVE, gift('1,"AMOUNT":500')],
  ['with a form in its JSON', 'content-type', GIVE, HIDDEN],
  ['with an amount in its query', 'amount', `${GIVE}?amount=99`, gift(1), JSON_HEAD],
])(
  'A write %s is refused to any limited key by the name of the member, and passes unchanged with another key',
  async (_what, member, path, body, headers) => {
    for (const limits of [MAX_9, { kinds: ['give' as const] }, { operators: ['1'] }]) {
      const { owner, send } = await keyWith(limits);
      const refused = await send(path, body, headers);
      expect(refused).toMatchObject({ status: 403, json: { code: 'member_not_allowed', member } });
      const rows = await sql`select id from tallyhook.operations where owner = ${owner}`;
      expect([rows.length, rig.requests.length]).toEqual([0, 0]);
    }
    const unlimited = await keyWith(undefined);
    expect(await unlimited.send(path, body, headers)).toMatchObject({ status: 200 });
    expect(rig.requests.map((sent) => [sent.url, sent.body.toString()])).toEqual([[path, body]]);
  },
);

it('A key with limits may send writes within its limits, and reads', async () => {
  const { send } = await keyWith({ kinds: ['give'], operators: ['1'], amount_per_call: '10' });
  expect(await send(GIVE, gift(10))).toMatchObject({ status: 200 });
  expect(await rig.call('GET', READ)).toMatchObject({ status: 200 });
});

it('A repeat beyond the limits of its key gets the answer of the first write', async () => {
  const unlimited = await keyWith(undefined);
  const limited = await keyWith(MAX_9, unlimited.owner);
  const key = { 'idempotency-key': 'one' };
  const first = await unlimited.send(GIVE, gift(10), key);
  const repeat = await limited.send(GIVE, gift(10), key);
  expect([repeat.status, repeat.bytes]).toEqual([200, first.bytes]);
  expect(repeat.headers['idempotency-replayed']).toBe('true');
  const other = await limited.send(GIVE, gift(11), key);
  expect(other).toMatchObject({ status: 422, json: { code: 'idempotency_mismatch' } });
  const fresh = await limited.send(GIVE, gift(10), { 'idempotency-key': 'two' });
  expect(fresh).toMatchObject({ status: 403, json: { code: 'key_limit' } });
  const doubled = await limited.send(GIVE, gift('1,"AMOUNT":500'), key);
  expect(doubled).toMatchObject({ status: 422, json: { code: 'idempotency_mismatch' } });
  expect(rig.requests).toHaveLength(1);
});
