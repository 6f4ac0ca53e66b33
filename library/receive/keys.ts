/**
 * Keys that verify: `whsec_` (HMAC-SHA256, `v1`) and `whpk_` (ed25519, `v1a`). An empty, short or
 * damaged one is refused where it is read, because with it anyone could make a valid signature.
 */
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { WebhookError } from './errors.ts';

export interface VerifyingKey {
  scheme: 'v1' | 'v1a';
  key: KeyObject;
}

/** The length of an HMAC secret in bytes (Standard Webhooks). */
const SECRET_BYTES = { min: 24, max: 64 };
const PUBLIC_BYTES = 32;
/** Longer text is refused before it is decoded. */
const TEXT_MAX = 200;

/** @throws WebhookError `bad_key` */
export function parseKey(text: unknown): VerifyingKey {
  if (typeof text !== 'string' || text === '')
    throw badKey('it is empty; is the environment variable set?');
  const at = text.indexOf('_') + 1;
  const raw = text.length > TEXT_MAX ? undefined : decodeBase64(text.slice(at));
  switch (text.slice(0, at)) {
    case 'whsec_':
      if (!raw || raw.length < SECRET_BYTES.min || raw.length > SECRET_BYTES.max)
        throw badKey('a whsec_ secret holds 24 to 64 bytes in base64');
      return { scheme: 'v1', key: createSecretKey(raw) };
    case 'whpk_':
      if (raw?.length !== PUBLIC_BYTES) throw badKey('a whpk_ key holds 32 bytes in base64');
      return { scheme: 'v1a', key: publicKey(raw) };
    case 'whsk_':
      throw badKey('a whsk_ key signs and belongs to the sender; use its whpk_ key');
    default:
      throw badKey('it starts with neither whsec_ nor whpk_');
  }
}

function badKey(reason: string): WebhookError {
  return new WebhookError('bad_key', `the key cannot verify webhooks: ${reason}`);
}

function publicKey(raw: Buffer): KeyObject {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') };
  return createPublicKey({ key: jwk, format: 'jwk' });
}

/** Strict, because Node's decoder ignores invalid characters. */
export function decodeBase64(text: string): Buffer | undefined {
  const raw = Buffer.from(text, 'base64');
  return text !== '' && raw.toString('base64') === text ? raw : undefined;
}
