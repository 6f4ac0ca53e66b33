/** Encryption of secrets at rest. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { systemRandom } from '../../src/kernel/random.ts';
import { makeEncryption } from '../../src/webhooks/encryption.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const { encrypt, decrypt } = makeEncryption(seededRandom(1).bytes(32), systemRandom);
const other = makeEncryption(seededRandom(2).bytes(32), systemRandom);
const failed = expect.objectContaining({ code: 'decryption_failed' });

it('A secret is decrypted in the context in which it was encrypted', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, context) => {
      expect(decrypt(encrypt(secret, context), context)).toBe(secret);
    }),
  );
});

it('A ciphertext shows nothing of the secret and differs each time', () => {
  const [one, two] = [encrypt('whsec_plain', 'a'), encrypt('whsec_plain', 'a')];
  expect(one).not.toBe(two);
  expect(one).toMatch(/^s1\.[A-Za-z0-9_-]+$/);
  expect(Buffer.from(one.slice(3), 'base64url').toString('latin1')).not.toContain('plain');
});

it('A ciphertext with one changed bit is refused', () => {
  const raw = Buffer.from(encrypt('secret', 'context').slice(3), 'base64url');
  for (let bit = 0; bit < raw.length * 8; bit++) {
    const changed = Buffer.from(raw);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const text = `s1.${changed.toString('base64url')}`;
    expect(() => decrypt(text, 'context')).toThrow(failed);
  }
});

it('A ciphertext truncated anywhere is refused', () => {
  // The empty secret has no bytes after its tag, so only the length of the tag protects it.
  const raw = Buffer.from(encrypt('', 'context').slice(3), 'base64url');
  for (let length = 0; length < raw.length; length++) {
    const text = `s1.${raw.subarray(0, length).toString('base64url')}`;
    expect(() => decrypt(text, 'context')).toThrow(failed);
  }
});

it.each<[string, () => string]>([
  ['in another context', () => decrypt(encrypt('x', 'a'), 'b')],
  ['with another key', () => other.decrypt(encrypt('x', 'a'), 'a')],
  ['without its prefix', () => decrypt(encrypt('x', 'a').slice(3), 'a')],
  ['that is only the prefix', () => decrypt('s1.', 'a')],
  ['that is empty', () => decrypt('', 'a')],
])('A ciphertext %s is refused', (_case, call) => {
  expect(call).toThrow(failed);
});
