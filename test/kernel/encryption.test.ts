/** A sealed secret opens with its key, in its place, whole, and in no other way. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { makeEncryption } from '../../src/kernel/encryption.ts';
import { seededRandom, systemRandom } from '../../src/kernel/random.ts';

const KEY = seededRandom(1).bytes(32);
const seal = makeEncryption(KEY, systemRandom);
const broken = { code: 'seal_broken' };

describe('A seal', () => {
  test('Opens to the same secret in the same place', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, place) => {
        expect(seal.open(seal.close(secret, place), place)).toBe(secret);
      }),
    );
  });

  test('Shows nothing of the secret, and never looks the same twice', () => {
    const [one, two] = [seal.close('whsec_hush', 'a'), seal.close('whsec_hush', 'a')];
    expect(one).not.toBe(two);
    expect(one).toMatch(/^s1\.[A-Za-z0-9_-]+$/);
    expect(Buffer.from(one.slice(3), 'base64url').toString('latin1')).not.toContain('hush');
  });

  test('Does not open when one bit of it was changed', () => {
    const raw = Buffer.from(seal.close('secret', 'place').slice(3), 'base64url');
    for (let bit = 0; bit < raw.length * 8; bit++) {
      const changed = Buffer.from(raw);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const text = `s1.${changed.toString('base64url')}`;
      expect(() => seal.open(text, 'place')).toThrow(expect.objectContaining(broken));
    }
  });

  test('Does not open when it was cut anywhere', () => {
    // The empty secret: cut into its tag, only the length of the tag is left to tell.
    const raw = Buffer.from(seal.close('', 'place').slice(3), 'base64url');
    for (let length = 0; length < raw.length; length++) {
      const text = `s1.${raw.subarray(0, length).toString('base64url')}`;
      expect(() => seal.open(text, 'place')).toThrow(expect.objectContaining(broken));
    }
  });

  it.each<[string, () => string]>([
    ['in another place', () => seal.open(seal.close('x', 'a'), 'b')],
    [
      'with another key',
      () => makeEncryption(seededRandom(2).bytes(32), systemRandom).open(seal.close('x', 'a'), 'a'),
    ],
    ['without its mark', () => seal.open(seal.close('x', 'a').slice(3), 'a')],
    ['when it is no seal', () => seal.open('s1.', 'a')],
    ['when it is empty', () => seal.open('', 'a')],
  ])('Does not open %s', (_how, open) => {
    expect(open).toThrow(expect.objectContaining(broken));
  });
});
