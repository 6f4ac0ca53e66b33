/** What is remembered of the secrets of endpoints. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeDecrypt } from '../../src/webhooks/delivery/http/request.ts';
import { makeEncryption } from '../../src/webhooks/encryption.ts';
import { parseRanges } from '../../src/webhooks/endpoints/address.ts';
import { encryptAuth, encryptKeys } from '../../src/webhooks/endpoints/secrets.ts';
import { makeKey } from '../../src/webhooks/endpoints/signing.ts';
import { seededRandom } from '../harness/seeded-random.ts';

/** Endpoints whose secrets stay decrypted. */
const DECRYPTED_MAX = 1_000;

it('The TLS settings of an endpoint in use are one object, however many others there are', () => {
  const random = seededRandom(1);
  const encryption = makeEncryption(new Uint8Array(32).fill(7), random);
  const keys = [makeKey('v1', 0, random)];
  const decrypt = makeDecrypt({
    encryption,
    wallClock: systemClock,
    rules: { allowHttp: true, allowed: parseRanges([]) },
    userAgent: 'test',
  });
  const endpoint = (endpointId: string) => ({
    endpointId,
    url: 'https://example.com/hook',
    signing: ['v1'],
    encryptedSecrets: encryptKeys(encryption, endpointId, keys),
    encryptedHeaders: null,
    encryptedDestination: null,
    encryptedAuth: encryptAuth(encryption, endpointId, { tls: { ca: 'of this receiver' } }),
  });
  const event = { id: 'evt_1', body: Buffer.from('{}') };
  const used = endpoint('ep_used');
  const tlsOf = (one: typeof used) => decrypt(one).request(event, 0).tls;
  const first = tlsOf(used);
  expect(first).toEqual({ ca: 'of this receiver' });
  const others = Array.from({ length: DECRYPTED_MAX + 10 }, (_, n) => endpoint(`ep_${n}`));
  const same = others.filter((other) => {
    tlsOf(other);
    return tlsOf(used) === first;
  });
  expect(same).toHaveLength(others.length);
});
