/**
 * Encryption of an endpoint's signing keys and extra headers. Each is encrypted for its own column
 * and endpoint, so a ciphertext copied elsewhere cannot be decrypted. What can be decrypted was
 * encrypted here, and so has its form.
 */
import { jsonText } from '../../kernel/json.ts';
import type { Encryption } from '../encryption.ts';
import type { SigningKey } from './signing.ts';

const keysContext = (endpointId: string) => `endpoints.encrypted_secrets:${endpointId}`;
const headersContext = (endpointId: string) => `endpoints.encrypted_headers:${endpointId}`;

export function encryptKeys(
  encryption: Encryption,
  endpointId: string,
  keys: readonly SigningKey[],
): string {
  return encryption.encrypt(jsonText(keys), keysContext(endpointId));
}

/** @throws Failure `decryption_failed` */
export function decryptKeys(
  encryption: Encryption,
  endpointId: string,
  encrypted: string,
): SigningKey[] {
  const text = encryption.decrypt(encrypted, keysContext(endpointId));
  return JSON.parse(text) as SigningKey[];
}

export function encryptHeaders(
  encryption: Encryption,
  endpointId: string,
  headers: Readonly<Record<string, string>>,
): string | null {
  if (Object.keys(headers).length === 0) return null;
  return encryption.encrypt(jsonText(headers), headersContext(endpointId));
}

/** @throws Failure `decryption_failed` */
export function decryptHeaders(
  encryption: Encryption,
  endpointId: string,
  encrypted: string | null,
): Record<string, string> {
  if (encrypted === null) return {};
  const text = encryption.decrypt(encrypted, headersContext(endpointId));
  return JSON.parse(text) as Record<string, string>;
}
