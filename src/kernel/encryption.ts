/**
 * Secrets at rest: AES-256-GCM under the master key, with the secret's own place as associated
 * data, so that a sealed text copied to another row does not open. Form: `s1.` + base64url(nonce ‖
 * tag ‖ text).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Failure } from './errors.ts';
import type { Random } from './random.ts';

export interface Encryption {
  close(secret: string, place: string): string;
  /** @throws Failure `seal_broken` when the text was not sealed by this key for this place. */
  open(sealed: string, place: string): string;
}

/** @param masterKey 32 bytes */
export function makeEncryption(masterKey: Uint8Array, random: Random): Encryption {
  return {
    close(secret, place) {
      const nonce = random.bytes(12);
      const cipher = createCipheriv('aes-256-gcm', masterKey, nonce).setAAD(Buffer.from(place));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `s1.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')}`;
    },
    open(sealed, place) {
      if (!sealed.startsWith('s1.')) throw new Failure('seal_broken');
      try {
        const raw = Buffer.from(sealed.slice(3), 'base64url');
        const nonce = raw.subarray(0, 12);
        // A text that was cut must not open by a shorter tag.
        const whole = { authTagLength: 16 };
        const decipher = createDecipheriv('aes-256-gcm', masterKey, nonce, whole);
        decipher.setAAD(Buffer.from(place)).setAuthTag(raw.subarray(12, 28));
        return Buffer.concat([decipher.update(raw.subarray(28)), decipher.final()]).toString(
          'utf8',
        );
      } catch {
        throw new Failure('seal_broken');
      }
    },
  };
}
