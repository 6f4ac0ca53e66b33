/** The signature, against the published vectors and against a verifier that is not ours. */
import { createHmac, verify } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { signatures, signedHeaders } from '../../src/webhooks/delivery/sign.ts';
import {
  liveKeys,
  makeKey,
  publicKeyOf,
  readyKey,
  rotateKeys,
  verifyingKey,
} from '../../src/webhooks/endpoints/keys.ts';

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

describe('signing', () => {
  test.each([
    ['A', A],
    ['B', B],
    ['D', D],
  ])('gives the signature of vector %s', (_name, vector) => {
    expect(signatures(messageOf(vector), [readyKey(vector.secret)])).toEqual([vector.signature]);
  });

  test('gives the signature of vector C, whose key of 18 bytes is too short to be ours', () => {
    const key = Buffer.from(C.secret.slice('whsec_'.length), 'base64');
    expect(signatures(messageOf(C), [{ scheme: 'v1', key }])).toEqual([C.signature]);
    expect(() => readyKey(C.secret)).toThrow('bad_setting');
  });

  test('of vector D is verified by its public key', () => {
    expect(publicKeyOf(WHSK)).toBe(WHPK);
    const signature = Buffer.from(D.signature.slice(4), 'base64');
    const content = Buffer.from(`${D.id}.${D.timestamp}.${D.body}`);
    expect(verify(null, content, verifyingKey(WHPK), signature)).toBe(true);
    expect(verify(null, Buffer.from('else'), verifyingKey(WHPK), signature)).toBe(false);
  });

  test('vector E: a list verifies when one entry is right, and a wrong one alone does not', () => {
    const now = Math.floor(Date.UTC(2026, 0, 1) / 1000);
    const wrong = 'v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=';
    const key = A.secret.slice('whsec_'.length);
    const right = `v1,${createHmac('sha256', Buffer.from(key, 'base64'))
      .update(`${A.id}.${now}.${A.body}`)
      .digest('base64')}`;
    const [ours] = signatures({ ...messageOf(A), timestamp: now }, [readyKey(A.secret)]);
    expect(ours).toBe(right);
    const four = [wrong, `v2,${right.slice(3)}`, right, `v2,${wrong.slice(3)}`];
    expect(four.filter((entry) => entry === ours)).toEqual([right]);
  });

  test.each([
    ['an empty key', 'whsec_'],
    ['a short key', `whsec_${Buffer.alloc(23).toString('base64')}`],
    ['a long key', `whsec_${Buffer.alloc(65).toString('base64')}`],
    ['a key without its prefix', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    ['a key that is not base64', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La!aSw'],
    ['vector F: a truncated whsk_', 'whsk_6Xb/Kv'],
    ['vector F: a public key given as a secret', WHPK],
    ['halves of two keys', `whsk_${Buffer.alloc(64, 1).toString('base64')}`],
  ])('refuses %s', (_name, secret) => {
    expect(() => readyKey(secret)).toThrow('bad_setting');
  });

  test('is accepted by standardwebhooks, for any id, body and key', () => {
    const id = fc.stringMatching(/^evt_[a-z0-9-]{1,40}$/);
    fc.assert(
      fc.property(id, fc.string({ unit: 'binary' }), fc.integer({ min: 1 }), (id, text, seed) => {
        // Lone surrogates have no bytes of their own, so no JSON of ours holds one.
        const body = Buffer.from(text, 'utf8').toString('utf8');
        const timestamp = Math.floor(performance.timeOrigin / 1000);
        const { secret } = makeKey('v1', 0, seededRandom(seed));
        const headers = signedHeaders({ id, timestamp, body: Buffer.from(body) }, [
          readyKey(secret),
        ]);
        const verifier = new Webhook(secret);
        try {
          verifier.verify(body, headers);
        } catch (error) {
          // After the signature holds it parses the body, which need not be JSON here.
          expect(error).toBeInstanceOf(SyntaxError);
        }
        expect(() => verifier.verify(`${body} `, headers)).toThrow('No matching signature');
      }),
    );
  });

  test('refuses an id that could move bytes between the parts', () => {
    expect(() => signatures({ ...messageOf(A), id: 'evt.1' }, [readyKey(A.secret)])).toThrow();
  });
});

describe('rotation', () => {
  const random = seededRandom(5);
  const old = makeKey('v1', 0, random);

  test('lets both keys sign during the overlap, and only the new one after it', () => {
    const fresh = makeKey('v1', 1_000, random);
    const keys = rotateKeys([old], [fresh], 500, 1_000);
    expect(liveKeys(keys, 1_499).map((k) => k.secret)).toEqual([fresh.secret, old.secret]);
    expect(liveKeys(keys, 1_500).map((k) => k.secret)).toEqual([fresh.secret]);
  });

  test('never lengthens the life of a key', () => {
    const once = rotateKeys([old], [makeKey('v1', 1_000, random)], 500, 1_000);
    const twice = rotateKeys(once, [makeKey('v1', 1_200, random)], 5_000, 1_200);
    expect(twice.find((key) => key.secret === old.secret)?.until).toBe(1_500);
  });

  test('refuses more than ten keys at once', () => {
    let keys = [old];
    for (let i = 0; i < 9; i++) keys = rotateKeys(keys, [makeKey('v1', 0, random)], 500, 0);
    expect(() => rotateKeys(keys, [makeKey('v1', 0, random)], 500, 0)).toThrow('conflict');
  });
});
