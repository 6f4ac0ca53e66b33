/** Signatures, checked with the published vectors and an independent verifier; key rotation. */
import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import {
  activeKeys,
  makeKey,
  parseKey,
  publicKeyOf,
  rotateKeys,
  signatures,
  signedHeaders,
} from '../../src/webhooks/endpoints/signing.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { verifyV1a } from './rig.ts';

const A = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const B = {
  secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  id: 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk',
  timestamp: 1649367553,
  body: '{"email":"test@example.com","username":"test_user"}',
  signature: 'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
};
const C = {
  secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
  id: 'msg_loFOjxBNrRLzqYUf',
  timestamp: 1731705121,
  body: '{"event_type":"ping","data":{"success":true}}',
  signature: 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
};
const WHSK =
  'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
const WHPK = 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=';
const D = {
  ...A,
  secret: WHSK,
  signature:
    'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==',
};

const messageOf = (v: typeof A) => ({
  id: v.id,
  timestamp: v.timestamp,
  body: Buffer.from(v.body),
});

it.each([
  ['A', A],
  ['B', B],
  ['D', D],
])('Published vector %s is reproduced', (_name, vector) => {
  expect(signatures(messageOf(vector), [parseKey(vector.secret)])).toEqual([vector.signature]);
});

it('Vector C is reproduced, though its key of 18 bytes is refused as an endpoint key', () => {
  const key = Buffer.from(C.secret.slice('whsec_'.length), 'base64');
  expect(signatures(messageOf(C), [{ scheme: 'v1', key: createSecretKey(key) }])).toEqual([
    C.signature,
  ]);
  expect(() => parseKey(C.secret)).toThrow('bad_setting');
});

it('Vector D is verified by its public key', () => {
  expect(publicKeyOf(WHSK)).toBe(WHPK);
  const content = Buffer.from(`${D.id}.${D.timestamp}.${D.body}`);
  expect(verifyV1a(WHPK, content, D.signature)).toBe(true);
  expect(verifyV1a(WHPK, Buffer.from('other'), D.signature)).toBe(false);
});

it('Vector E: of a list of signatures only the right one matches', () => {
  const now = Math.floor(Date.UTC(2026, 0, 1) / 1000);
  const wrong = 'v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=';
  const key = A.secret.slice('whsec_'.length);
  const right = `v1,${createHmac('sha256', Buffer.from(key, 'base64'))
    .update(`${A.id}.${now}.${A.body}`)
    .digest('base64')}`;
  const [ours] = signatures({ ...messageOf(A), timestamp: now }, [parseKey(A.secret)]);
  expect(ours).toBe(right);
  const list = [wrong, `v2,${right.slice(3)}`, right, `v2,${wrong.slice(3)}`];
  expect(list.filter((entry) => entry === ours)).toEqual([right]);
});

it.each([
  ['An empty key', 'whsec_'],
  ['A short key', `whsec_${Buffer.alloc(23).toString('base64')}`],
  ['A long key', `whsec_${Buffer.alloc(65).toString('base64')}`],
  ['A key without its prefix', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ['A key that is not base64', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La!aSw'],
  ['Vector F, a truncated whsk_,', 'whsk_6Xb/Kv'],
  ['Vector F, a public key in place of a secret,', WHPK],
  ['A whsk_ of two different keys', `whsk_${Buffer.alloc(64, 1).toString('base64')}`],
])('%s is refused', (_name, secret) => {
  expect(() => parseKey(secret)).toThrow('bad_setting');
});

it('standardwebhooks accepts the signature of any id, body and key', () => {
  const ids = fc.stringMatching(/^evt_[a-z0-9-]{1,40}$/);
  fc.assert(
    fc.property(ids, fc.string({ unit: 'binary' }), fc.integer({ min: 1 }), (id, text, seed) => {
      // Lone surrogates have no UTF-8 bytes, so no event body contains one.
      const body = Buffer.from(text, 'utf8').toString('utf8');
      const timestamp = Math.floor(systemClock.now() / 1000);
      const { secret } = makeKey('v1', 0, seededRandom(seed));
      const message = { id, timestamp, body: Buffer.from(body) };
      const headers = signedHeaders(message, [parseKey(secret)]);
      const verifier = new Webhook(secret);
      try {
        verifier.verify(body, headers);
      } catch (error) {
        // After it has verified the signature it parses the body, which need not be JSON here.
        expect(error).toBeInstanceOf(SyntaxError);
      }
      expect(() => verifier.verify(`${body} `, headers)).toThrow('No matching signature');
    }),
  );
});

it('An id with a dot is refused, because the signed content would be ambiguous', () => {
  expect(() => signatures({ ...messageOf(A), id: 'evt.1' }, [parseKey(A.secret)])).toThrow();
});

const random = seededRandom(5);
const old = makeKey('v1', 0, random);

it('After a rotation both keys sign until the overlap ends, then only the new one', () => {
  const fresh = makeKey('v1', 1_000, random);
  const keys = rotateKeys([old], [fresh], 500, 1_000);
  expect(activeKeys(keys, 1_499).map((k) => k.secret)).toEqual([fresh.secret, old.secret]);
  expect(activeKeys(keys, 1_500).map((k) => k.secret)).toEqual([fresh.secret]);
});

it('A second rotation never extends a key', () => {
  const once = rotateKeys([old], [makeKey('v1', 1_000, random)], 500, 1_000);
  const twice = rotateKeys(once, [makeKey('v1', 1_200, random)], 5_000, 1_200);
  expect(twice.find((key) => key.secret === old.secret)?.until).toBe(1_500);
});

it('More than ten active keys are refused', () => {
  let keys = [old];
  for (let i = 0; i < 9; i++) keys = rotateKeys(keys, [makeKey('v1', 0, random)], 500, 0);
  expect(() => rotateKeys(keys, [makeKey('v1', 0, random)], 500, 0)).toThrow('conflict');
});
