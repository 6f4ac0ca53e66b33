/**
 * Encryption of secrets at rest: AES-256-GCM under the master key. The caller's context (such as
 * column and row id) is the associated data, so a ciphertext copied to another row cannot be
 * decrypted there. Format: `s1.` + base64url(nonce ‖ tag ‖ ciphertext).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Failure } from './errors.ts';
import type { Random } from './random.ts';

export interface Encryption {
  encrypt(secret: string, context: string): string;
  /** @throws Failure `decryption_failed` unless this key encrypted the text for this context */
  decrypt(encrypted: string, context: string): string;
}

/** @param masterKey 32 bytes */
export function makeEncryption(masterKey: Uint8Array, random: Random): Encryption {
  return {
    encrypt(secret, context) {
      const nonce = random.bytes(12);
      const cipher = createCipheriv('aes-256-gcm', masterKey, nonce).setAAD(Buffer.from(context));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `s1.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')}`;
    },
    decrypt(encrypted, context) {
      if (!encrypted.startsWith('s1.')) throw new Failure('decryption_failed');
      try {
        const raw = Buffer.from(encrypted.slice(3), 'base64url');
        const nonce = raw.subarray(0, 12);
        // Without a fixed length, Node accepts the shorter tag of a truncated ciphertext.
        const options = { authTagLength: 16 };
        const decipher = createDecipheriv('aes-256-gcm', masterKey, nonce, options);
        decipher.setAAD(Buffer.from(context)).setAuthTag(raw.subarray(12, 28));
        const text = Buffer.concat([decipher.update(raw.subarray(28)), decipher.final()]);
        return text.toString('utf8');
      } catch {
        throw new Failure('decryption_failed');
      }
    },
  };
}
