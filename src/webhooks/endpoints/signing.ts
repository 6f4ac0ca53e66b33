/**
 * Signing keys and signatures of Standard Webhooks: `whsec_` (HMAC, v1), `whsk_` and `whpk_`
 * (ed25519 seed ‖ public key, and public key, v1a). Pure. Empty, short or truncated keys are
 * refused, because anyone could forge their signatures.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  sign as signEd25519,
} from 'node:crypto';
import type { Instant } from '../../kernel/clock.ts';
import { assert, Failure, must } from '../../kernel/errors.ts';
import type { Random } from '../../kernel/random.ts';
import type { Scheme } from '../../resources/delivery/endpoint.ts';

/** `until` null: until it is rotated. */
export interface SigningKey {
  scheme: Scheme;
  /** `whsec_…` or `whsk_…`. */
  secret: string;
  from: Instant;
  until: Instant | null;
}

/** @property timestamp unix seconds of the attempt */
interface Message {
  id: string;
  timestamp: number;
  body: Uint8Array;
}

/** Key objects, because importing a key costs as much as signing with it. */
export interface ParsedKey {
  scheme: Scheme;
  key: KeyObject;
}

/** The length of an HMAC secret in bytes (Standard Webhooks). */
const HMAC_BYTES = { min: 24, max: 64 };
const KEYS_MAX = 10;

/** DER before the 32 bytes of a raw ed25519 key. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

export function makeKey(scheme: Scheme, from: Instant, random: Random): SigningKey {
  const seed = Buffer.from(random.bytes(32));
  const secret =
    scheme === 'v1'
      ? `whsec_${seed.toString('base64')}`
      : `whsk_${Buffer.concat([seed, publicBytes(privateKey(seed))]).toString('base64')}`;
  return { scheme, secret, from, until: null };
}

/** @throws Failure `bad_setting` unless the text is a complete `whsec_` or `whsk_` key */
export function parseKey(secret: string): ParsedKey {
  if (secret.startsWith('whsec_')) {
    const key = decodeBase64(secret.slice('whsec_'.length));
    if (!key || key.length < HMAC_BYTES.min || key.length > HMAC_BYTES.max)
      throw new Failure('bad_setting', 'a whsec_ key holds 24 to 64 bytes in base64');
    return { scheme: 'v1', key: createSecretKey(key) };
  }
  const pair = secret.startsWith('whsk_') ? decodeBase64(secret.slice('whsk_'.length)) : undefined;
  if (pair?.length !== 64)
    throw new Failure('bad_setting', 'a signing key starts with whsec_, or whsk_ with 64 bytes');
  const key = privateKey(pair.subarray(0, 32));
  if (!publicBytes(key).equals(pair.subarray(32)))
    throw new Failure('bad_setting', 'the public key in the whsk_ key does not match its seed');
  return { scheme: 'v1a', key };
}

/** The `whpk_…` of a `whsk_…`. @throws Failure `bad_setting` */
export function publicKeyOf(secret: string): string {
  const parsed = parseKey(secret);
  if (parsed.scheme !== 'v1a')
    throw new Failure('bad_setting', 'only a whsk_ key has a public key');
  return `whpk_${publicBytes(parsed.key).toString('base64')}`;
}

/** The keys that sign now, newest first. */
export function activeKeys<K extends SigningKey>(keys: readonly K[], now: Instant): K[] {
  return keys.filter((key) => key.from <= now && (key.until === null || key.until > now));
}

/**
 * The keys after a rotation: the new ones first, then the present ones until the overlap ends.
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

/** The three headers of Standard Webhooks, with one signature per key in the order of the keys. */
export function signedHeaders(message: Message, keys: readonly ParsedKey[]) {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signatures(message, keys).join(' '),
  };
}

/** One `v1,…` or `v1a,…` per key, over `id.timestamp.body`. */
export function signatures(message: Message, keys: readonly ParsedKey[]): string[] {
  const { id, timestamp, body } = message;
  // A dot in the id or timestamp would make the signed content ambiguous.
  assert(!id.includes('.') && Number.isInteger(timestamp), 'webhook id and timestamp have no dot');
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return keys.map((parsed) =>
    parsed.scheme === 'v1'
      ? `v1,${createHmac('sha256', parsed.key).update(content).digest('base64')}`
      : `v1a,${signEd25519(null, content, parsed.key).toString('base64')}`,
  );
}

function privateKey(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([PRIVATE_PREFIX, seed]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

function publicBytes(key: KeyObject): Buffer {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(must(x, 'public key'), 'base64url');
}

/** Strict, because Node's decoder ignores invalid characters. */
function decodeBase64(text: string): Buffer | undefined {
  const raw = Buffer.from(text, 'base64');
  return text !== '' && raw.toString('base64') === text ? raw : undefined;
}
