/**
 * Encryption of secrets at rest: AES-256-GCM under the master key. The caller's context (such as
 * column and row id) is the associated data, so a ciphertext copied to another row cannot be
 * decrypted there. Format: `s1.` + base64url(nonce ‖ tag ‖ ciphertext).
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { Failure } from '../kernel/errors.ts';
import type { Random } from '../kernel/random.ts';

export interface Encryption {
  encrypt(secret: string, context: string): string;
  /** @throws Failure `decryption_failed` unless a known key encrypted the text for this context */
  decrypt(encrypted: string, context: string): string;
}

/**
 * Encrypts with the master key, and decrypts what it or the former key encrypted.
 * @param masterKey 32 bytes
 */
export function makeEncryption(
  masterKey: Uint8Array,
  random: Random,
  formerKey?: Uint8Array,
): Encryption {
  const keys = formerKey ? [masterKey, formerKey] : [masterKey];
  return {
    encrypt(secret, context) {
      const nonce = random.bytes(12);
      const cipher = createCipheriv('aes-256-gcm', masterKey, nonce).setAAD(Buffer.from(context));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `s1.${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')}`;
    },
    decrypt(encrypted, context) {
      for (const key of keys) {
        const text = decryptWith(key, encrypted, context);
        if (text !== undefined) return text;
      }
      throw new Failure('decryption_failed');
    },
  };
}

function decryptWith(key: Uint8Array, encrypted: string, context: string): string | undefined {
  if (!encrypted.startsWith('s1.')) return undefined;
  try {
    const raw = Buffer.from(encrypted.slice(3), 'base64url');
    const nonce = raw.subarray(0, 12);
    // Without a fixed length, Node accepts the shorter tag of a truncated ciphertext.
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
    decipher.setAAD(Buffer.from(context)).setAuthTag(raw.subarray(12, 28));
    return Buffer.concat([decipher.update(raw.subarray(28)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
