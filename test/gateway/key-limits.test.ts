import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { isAmbiguous } from '../../src/gateway/key-limits.ts';
import type { Request } from '../../src/gateway/routes.ts';
import type { KeyLimits } from '../../src/keys/keys.ts';
import { GIVE, READ, setUpGateway } from './rig.ts';

const { rig, sql } = await setUpGateway();

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const request = (body: string | Buffer, contentType?: string): Request => ({
  ...{ method: 'POST', path: '/v1/app/token/accounts/transfer', query: '', headers: [] },
  ...{ contentType, body: Buffer.from(body) },
});
const both = '{"amount":1,"reasonType":"x&amount=99&toAddr=y"}';

it.each<[string | Buffer, string | undefined, boolean]>([
  ['{"amount":1,"amount":2}', undefined, true],
  ['{"amount":1,"\\u0061mount":2}', undefined, true],
  ['{"a":{"amount":1},"amount":2,"b":[{"amount":3}]}', undefined, false],
  ['{"amount":"\\",\\"amount\\":1","b":{}}', undefined, false],
  ['{"amount":1', undefined, true],
  ['amount=1&toAddr=x', undefined, false],
  ['amount=1&amount=2', undefined, true],
  ['', undefined, false],
  // Valid as JSON and as a form.
  [both, JSON_TYPE, false],
  [both, 'application/vnd.api+json; charset=UTF-8', false],
  [both, undefined, true],
  [both, FORM, true],
  [both, `${FORM}; a=json`, true],
  ['{"amount":1,"reasonType":"r"}', FORM, false],
  [`${' '.repeat(80)}${both}`, undefined, true],
  ['[{"amount":99,"reasonType":"x&amount=1&y="}]', undefined, true],
  ['amount=1&toAddr=x', 'multipart/form-data; boundary=b', true],
  ['amount=1&toAddr=x', 'text/plain', true],
  ['{"amount":1}', 'application/json; charset=utf-7', true],
  [gzipSync('{"amount":1}'), JSON_TYPE, true],
])('A request with the body %s of type %s is ambiguous: %s', (body, type, ambiguous) => {
  expect(isAmbiguous(request(body, type))).toBe(ambiguous);
});

it.each<[string, Partial<Request>, boolean]>([
  ['another query', { query: '?x=1' }, false],
  ['an amount in the query', { query: '?x=1&amount=99' }, true],
  ['a fee in the query', { query: '?feeAmount=99' }, true],
  ['a content encoding', { headers: [['content-encoding', 'gzip']] }, true],
])('A request with %s is ambiguous or not', (_what, more, ambiguous) => {
  expect(isAmbiguous({ ...request('{"amount":1}', JSON_TYPE), ...more })).toBe(ambiguous);
});

const TO = '0xA11CE'.padEnd(42, '0');
const TRANSFER = '/v1/app/token/accounts/transfer';
const MAX_9 = { amount_per_call: '9' };
const JSON_HEAD = { 'content-type': JSON_TYPE };
const GZIP = { ...JSON_HEAD, 'content-encoding': 'gzip' };
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

it.each<[string, keyof KeyLimits, KeyLimits, string, string, object?]>([
  ['of another kind', 'kinds', { kinds: ['transfer'] }, GIVE, gift(1)],
  ['of an unknown kind', 'kinds', { kinds: ['give'] }, '/v1/app/token/events/1', '{}'],
  ['of another operator', 'operators', { operators: ['2'] }, GIVE, gift(1)],
  ['with an amount above the limit', 'amount_per_call', MAX_9, GIVE, gift(10)],
  ['with amount and fee above the limit', 'amount_per_call', MAX_9, TRANSFER, move(9, 1)],
  ['without an amount', 'amount_per_call', MAX_9, GIVE, '{"toAddr":"x"}'],
  ['with a fraction', 'amount_per_call', MAX_9, GIVE, gift('1.5')],
  ['with two amounts', 'amount_per_call', MAX_9, GIVE, gift('99,"amount":1')],
  ['above the limit of a day', 'amount_per_day', { amount_per_day: '9' }, GIVE, gift(10)],
  ['with a form in its JSON', 'amount_per_call', MAX_9, GIVE, HIDDEN],
  ['with a content encoding', 'amount_per_call', MAX_9, GIVE, gift(1), GZIP],
  [
    'with an amount in its query',
    'amount_per_call',
    MAX_9,
    `${GIVE}?amount=99`,
    gift(1),
    JSON_HEAD,
  ],
])(
  'A write %s is refused by the limits of its key and not recorded',
  async (_what, limit, limits, path, body, headers) => {
    const { owner, send } = await keyWith(limits);
    const response = await send(path, body, headers);
    expect(response).toMatchObject({ status: 403, json: { code: 'key_limit', limit } });
    expect(response.headers['content-type']).toBe('application/problem+json');
    const rows = await sql`select id from tallyhook.operations where owner = ${owner}`;
    expect([rows.length, rig.requests.length]).toEqual([0, 0]);
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
  expect(rig.requests).toHaveLength(1);
});
