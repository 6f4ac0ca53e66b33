/**
 * The signatures of Standard Webhooks over the raw bytes of a body. Pure: keys and time are
 * arguments.
 */
import { createHmac, timingSafeEqual, verify as verifyEd25519 } from 'node:crypto';
import { WebhookError } from './errors.ts';
import { decodeBase64, type VerifyingKey } from './keys.ts';

/** Of Node's `http`, of Fetch, or of anything else that names them in lower case. */
export type HeadersInput =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

export interface Message {
  headers: HeadersInput;
  /** The bytes as they arrived, before anything parsed them; a text stands for its UTF-8. */
  body: Uint8Array | string;
}

/** The verified headers of a message. */
export interface Envelope {
  id: string;
  /** When this attempt was sent, in unix seconds. */
  timestamp: number;
}

export interface VerifyOptions {
  keys: readonly VerifyingKey[];
  nowMs: number;
  /** How far the timestamp may be from now, in both directions. */
  toleranceS: number;
}

/** An id holds no full stop, which would make the signed content ambiguous. */
const ID = /^[\x21-\x2d\x2f-\x7e]{1,255}$/;
/** Whole unix seconds; `parseInt` would take `1700000000abc` for a time. */
const TIMESTAMP = /^(?:0|[1-9]\d{0,11})$/;
/** A sender signs with ten keys at most. Each entry costs a verification, so they are bounded. */
const ENTRIES_MAX = 20;
const SIGNATURES_LENGTH_MAX = 4_096;

/**
 * Verifies headers, age and signature. Signatures of unknown versions are skipped.
 * @throws WebhookError `missing_header`, `bad_header`, `outside_tolerance`, `bad_signature`
 */
export function verifyMessage({ headers, body }: Message, options: VerifyOptions): Envelope {
  const { keys, nowMs, toleranceS } = options;
  const id = headerOf(headers, 'webhook-id');
  const sent = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  if (!ID.test(id)) throw badHeader('webhook-id', '1 to 255 printable characters without a dot');
  if (!TIMESTAMP.test(sent)) throw badHeader('webhook-timestamp', 'whole unix seconds');
  const entries = signatures.split(' ').filter(Boolean);
  if (signatures.length > SIGNATURES_LENGTH_MAX || entries.length > ENTRIES_MAX)
    throw badHeader('webhook-signature', `${ENTRIES_MAX} signatures at most`);
  const timestamp = Number(sent);
  const ageS = Math.floor(nowMs / 1_000) - timestamp;
  // Written so that a NaN is refused.
  if (!(Math.abs(ageS) <= toleranceS)) {
    const where = ageS > 0 ? `${ageS} s ago` : `${-ageS} s ahead`;
    const reason = `it was sent ${where}, more than ${toleranceS} s; compare the clocks`;
    throw new WebhookError('outside_tolerance', reason);
  }
  const content = Buffer.concat([Buffer.from(`${id}.${sent}.`), bytesOf(body)]);
  if (!entries.some((entry) => keys.some((key) => isSignedBy(key, content, entry))))
    throw new WebhookError('bad_signature', 'no signature is one of the body by a known key');
  return { id, timestamp };
}

function isSignedBy({ scheme, key }: VerifyingKey, content: Uint8Array, entry: string): boolean {
  const given = entry.startsWith(`${scheme},`) && decodeBase64(entry.slice(scheme.length + 1));
  if (!given) return false;
  if (scheme === 'v1a') return given.length === 64 && verifyEd25519(null, content, key, given);
  const expected = createHmac('sha256', key).update(content).digest();
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** A header that must be there once. @throws WebhookError `missing_header` */
function headerOf(headers: HeadersInput, name: string): string {
  const { get } = headers;
  const value =
    typeof get === 'function'
      ? (headers as { get(name: string): string | null }).get(name)
      : (headers as Record<string, unknown>)[name];
  if (value === undefined || value === null || value === '')
    throw new WebhookError('missing_header', `there is no header ${name}`);
  if (typeof value !== 'string') throw badHeader(name, 'one value');
  return value;
}

function badHeader(name: string, form: string): WebhookError {
  return new WebhookError('bad_header', `the header ${name} must hold ${form}`);
}

export function bytesOf(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
