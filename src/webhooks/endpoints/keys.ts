/**
 * Signing keys of an endpoint in the forms of Standard Webhooks: `whsec_` (HMAC), `whsk_` and
 * `whpk_` (ed25519, seed ‖ public key and public key). Pure but for the randomness it is given. An
 * empty, short or truncated key is refused, because a signature made with one proves nothing.
 */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';

export const SCHEMES = ['v1', 'v1a'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** One signing key with the time in which it signs; `until` null: until it is rotated. */
export interface SigningKey {
  scheme: Scheme;
  /** `whsec_…` or `whsk_…`. */
  secret: string;
  from: Instant;
  until: Instant | null;
}

/** A key ready to sign. */
export type ReadyKey = { scheme: 'v1'; key: Uint8Array } | { scheme: 'v1a'; key: KeyObject };

/** The fewest and most bytes of an HMAC secret (Standard Webhooks). */
const HMAC_BYTES = { min: 24, max: 64 };
const KEYS_MAX = 10;

// A raw ed25519 key in DER is these bytes before its 32.
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** A new key that signs from `from` on. */
export function makeKey(scheme: Scheme, from: Instant, random: Random): SigningKey {
  const seed = Buffer.from(random.bytes(32));
  const secret =
    scheme === 'v1'
      ? `whsec_${seed.toString('base64')}`
      : `whsk_${Buffer.concat([seed, publicBytes(privateKey(seed))]).toString('base64')}`;
  return { scheme, secret, from, until: null };
}

/** @throws Failure `bad_setting` for a text that is not a whole `whsec_` or `whsk_` key */
export function readyKey(secret: string): ReadyKey {
  if (secret.startsWith('whsec_')) {
    const key = strictBase64(secret.slice('whsec_'.length));
    if (!key || key.length < HMAC_BYTES.min || key.length > HMAC_BYTES.max)
      throw new Failure('bad_setting', 'a whsec_ key holds 24 to 64 bytes in base64');
    return { scheme: 'v1', key };
  }
  const pair = secret.startsWith('whsk_') ? strictBase64(secret.slice('whsk_'.length)) : undefined;
  if (pair?.length !== 64)
    throw new Failure('bad_setting', 'a signing key starts with whsec_, or whsk_ with 64 bytes');
  const key = privateKey(pair.subarray(0, 32));
  if (!publicBytes(key).equals(pair.subarray(32)))
    throw new Failure('bad_setting', 'the halves of the whsk_ key do not belong together');
  return { scheme: 'v1a', key };
}

/** The `whpk_…` that verifies what this `whsk_…` signs. @throws Failure `bad_setting` */
export function publicKeyOf(secret: string): string {
  const ready = readyKey(secret);
  if (ready.scheme !== 'v1a') throw new Failure('bad_setting', 'only a whsk_ key has a public key');
  return `whpk_${publicBytes(ready.key).toString('base64')}`;
}

/** The key object of a `whpk_…`. @throws Failure `bad_setting` */
export function verifyingKey(text: string): KeyObject {
  const raw = text.startsWith('whpk_') ? strictBase64(text.slice('whpk_'.length)) : undefined;
  if (raw?.length !== 32) throw new Failure('bad_setting', 'a public key is whpk_ with 32 bytes');
  return createPublicKey({
    key: Buffer.concat([PUBLIC_PREFIX, raw]),
    format: 'der',
    type: 'spki',
  });
}

/** The keys that sign now, newest first. */
export function liveKeys<K extends SigningKey>(keys: readonly K[], now: Instant): K[] {
  return keys.filter((key) => key.from <= now && (key.until === null || key.until > now));
}

/**
 * The keys after a rotation: one new key per wanted scheme, in front, and the present ones until
 * the overlap ends. What has ended is dropped, and a scheme that is no longer wanted ends with the
 * overlap.
 * @throws Failure `conflict` when more than ten keys would sign at once
 */
export function rotateKeys(
  keys: readonly SigningKey[],
  fresh: readonly SigningKey[],
  overlapMs: number,
  now: Instant,
): SigningKey[] {
  const ends = now + overlapMs;
  const old = keys
    .map((key) => ({ ...key, until: Math.min(key.until ?? ends, ends) }))
    .filter((key) => key.until > now);
  if (fresh.length + old.length > KEYS_MAX)
    throw new Failure('conflict', 'too many keys overlap, wait until the older ones end');
  return [...fresh, ...old];
}

function privateKey(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([PRIVATE_PREFIX, seed]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

function publicBytes(key: KeyObject): Buffer {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(must(x, 'public key'), 'base64url');
}

/** Node's decoder skips what it does not know; a secret that was mangled must not pass. */
function strictBase64(text: string): Buffer | undefined {
  const raw = Buffer.from(text, 'base64');
  return text !== '' && raw.toString('base64') === text ? raw : undefined;
}
