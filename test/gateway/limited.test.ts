/** What a key may not do is refused before anything is recorded, and a repeat is still answered. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import type { KeyLimits } from '../../src/keys/keys.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { DONE, GIVE, openRig, type Rig } from './gateway-house.ts';

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db);
});
beforeEach(() => {
  rig.answer(() => DONE);
  rig.asked.length = 0;
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const TO = '0xA11CE'.padEnd(42, '0');
let owners = 0;
async function keyWith(limits: KeyLimits | undefined, owner = `owner-${owners++}`) {
  const scopes = ['gateway'] as const;
  const { secret } = await rig.keys.create({ name: 'app', owner, scopes, limits });
  return { secret, owner };
}
const call = (secret: string, path: string, body: string, more: Record<string, string> = {}) =>
  rig.call('POST', path, { headers: { authorization: `Bearer ${secret}`, ...more }, body });
const gift = (amount: number | string) => `{"toAddr":"${TO}","amount":${amount},"reasonType":"r"}`;
const TRANSFER = '/v1/app/token/accounts/transfer';
const move = (amount: number, fee: number) =>
  JSON.stringify({ fromAddr: TO, toAddr: TO, amount, feeAmount: fee, reasonType: 'r' });

describe('A write beyond a limit of its key', () => {
  it.each<[string, keyof KeyLimits, KeyLimits, string, string]>([
    ['of another kind', 'kinds', { kinds: ['transfer'] }, GIVE, gift(1)],
    ['of no kind', 'kinds', { kinds: ['give'] }, '/v1/app/token/events/1', '{}'],
    ['of another operator', 'operators', { operators: ['2'] }, GIVE, gift(1)],
    ['of too much', 'amount_per_call', { amount_per_call: '9' }, GIVE, gift(10)],
    ['of too much with its fee', 'amount_per_call', { amount_per_call: '9' }, TRANSFER, move(9, 1)],
    ['of no amount', 'amount_per_call', { amount_per_call: '9' }, GIVE, '{"toAddr":"x"}'],
    ['of half a one', 'amount_per_call', { amount_per_call: '9' }, GIVE, gift('1.5')],
    ['of two amounts', 'amount_per_call', { amount_per_call: '9' }, GIVE, gift('99,"amount":1')],
    ['of more than a day', 'amount_per_day', { amount_per_day: '9' }, GIVE, gift(10)],
  ])('Is refused, unrecorded: one %s', async (_what, limit, limits, path, body) => {
    const { secret, owner } = await keyWith(limits);
    const answered = await call(secret, path, body);
    expect(answered).toMatchObject({ status: 403, json: { code: 'key_limit', limit } });
    expect(answered.headers['content-type']).toBe('application/problem+json');
    const rows = await database.owner.sql`
      select id from tallyhook.operations where owner = ${owner}`;
    expect([rows.length, rig.asked.length]).toEqual([0, 0]);
  });

  it.each<[string, string, string, Record<string, string>]>([
    ['behind spaces', GIVE, `${' '.repeat(70)}${gift('99,"x":"&amount=1&"')}`, {}],
    ['packed', GIVE, gift(1), { 'content-encoding': 'gzip', 'content-type': 'application/json' }],
    ['in the query', `${GIVE}?amount=99`, gift(1), { 'content-type': 'application/json' }],
  ])('Is refused where it could be hidden: %s', async (_where, path, body, more) => {
    const { secret } = await keyWith({ amount_per_call: '9' });
    const answered = await call(secret, path, body, more);
    expect(answered).toMatchObject({ status: 403, json: { code: 'key_limit' } });
    expect(rig.asked).toEqual([]);
  });

  test('Is no write within it, which passes', async () => {
    const limits: KeyLimits = { kinds: ['give'], operators: ['1'], amount_per_call: '10' };
    const { secret } = await keyWith(limits);
    expect(await call(secret, GIVE, gift(10))).toMatchObject({ status: 200 });
    expect(await rig.call('GET', '/v1/app/token/account?addr=x')).toMatchObject({ status: 200 });
  });
});

describe('A repeat', () => {
  test('Is answered as before by a key that may no longer write so', async () => {
    const { secret, owner } = await keyWith(undefined);
    const once = { 'idempotency-key': 'before the limit' };
    const first = await call(secret, GIVE, gift(10), once);
    const limited = await keyWith({ kinds: ['burn'] }, owner);
    const again = await call(limited.secret, GIVE, gift(10), once);
    expect([again.status, again.bytes]).toEqual([200, first.bytes]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    const other = await call(limited.secret, GIVE, gift(11), once);
    expect(other).toMatchObject({ status: 422, json: { code: 'idempotency_mismatch' } });
    const fresh = await call(limited.secret, GIVE, gift(10), { 'idempotency-key': 'after it' });
    expect(fresh).toMatchObject({ status: 403, json: { code: 'key_limit' } });
    expect(rig.asked).toHaveLength(1);
  });

  test('Is answered as before while the service wants no writes', async () => {
    const slow = await openRig(database.db);
    try {
      const send = (key: string) =>
        slow.call('POST', GIVE, {
          headers: { authorization: `Bearer ${slow.secret}`, 'idempotency-key': key },
          body: gift(10),
        });
      const first = await send('one');
      slow.answer(() => ({ status: 429, headers: [['retry-after', '60']], body: 'slow down' }));
      expect(await send('two')).toMatchObject({ status: 429 });
      expect(await send('three')).toMatchObject({
        status: 429,
        json: { code: 'upstream_throttled' },
        headers: { 'retry-after': expect.stringMatching(/^(59|60)$/) },
      });
      const again = await send('one');
      expect([again.status, again.bytes]).toEqual([200, first.bytes]);
      expect(slow.asked).toHaveLength(2);
    } finally {
      await slow.close();
    }
  });
});

describe('What needs no key', () => {
  test('Leaves room to those who have one, however slowly it asks', async () => {
    const small = await openRig(database.db, { concurrencyMax: 4 });
    const slow: Socket[] = [];
    try {
      const head = 'POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n';
      // One is asked for its body and never sends it; the next are refused.
      for (const first of [true, false, false, false]) {
        const socket = connect(Number(new URL(small.url).port), '127.0.0.1');
        slow.push(socket);
        socket.write(`${head}expect: 100-continue\r\n\r\n`);
        const [said] = await once(socket, 'data');
        expect(String(said)).toContain(first ? '100 Continue' : '429 Too Many Requests');
      }
      expect(await small.call('POST', GIVE, { body: gift(1) })).toMatchObject({ status: 200 });
    } finally {
      for (const socket of slow) socket.destroy();
      await small.close();
    }
  });

  test('Is answered only so often to one address', async () => {
    const small = await openRig(database.db, { openPathsPerS: 0.5 });
    try {
      small.answer(() => ({ status: 200, body: '{}' }));
      const ask = () => small.call('GET', '/v1/system/maintenance', { headers: {} });
      expect((await ask()).status).toBe(200);
      const second = await ask();
      expect(second).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
      expect(Number(second.headers['retry-after'])).toBeGreaterThan(0);
      const own = await small.call('GET', '/v1/app/token/account?addr=x');
      expect(own.status).toBe(200);
      expect(small.asked).toHaveLength(2);
    } finally {
      await small.close();
    }
  });
});
