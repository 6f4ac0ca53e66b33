/** The headers of an app's request: its key, those that are forwarded, and those we read. */
import type { IncomingMessage } from 'node:http';
import { type Instant, parseInstant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { type Caller, isSecret, type Keys } from '../keys/keys.ts';
import { headerOf } from './http.ts';

export interface Identity {
  caller: Caller;
  /** The caller's own Authorization; undefined for the managed client token. */
  ownToken: string | undefined;
}

/** Reads the key from Authorization or `Tallyhook-Key`; undefined without a valid one. */
export async function authenticate(
  keys: Keys,
  incoming: IncomingMessage,
): Promise<Identity | undefined> {
  const authorization = headerOf(incoming, 'authorization');
  const address = incoming.socket.remoteAddress;
  const bearer = bearerOf(authorization);
  if (bearer && isSecret(bearer)) {
    const caller = await keys.authenticate(bearer, address);
    return caller && { caller, ownToken: undefined };
  }
  const key = headerOf(incoming, 'tallyhook-key');
  const caller = await keys.authenticate(key ?? '', address);
  return caller && { caller, ownToken: authorization };
}

/** The Authorization of an unauthenticated request, unless it holds one of our keys. */
export function serviceAuthorization(incoming: IncomingMessage): string | undefined {
  const authorization = headerOf(incoming, 'authorization');
  return isSecret(bearerOf(authorization) ?? '') ? undefined : authorization;
}

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
}

const FORWARDED = [
  'content-type',
  'content-encoding',
  'accept',
  'accept-language',
  'user-agent',
  'cookie',
];

/** Of W3C Trace Context; a malformed one and its `tracestate` are dropped, as it demands. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/** The `traceparent` of a request; undefined without a valid one. */
export function traceparentOf(incoming: IncomingMessage): string | undefined {
  const value = headerOf(incoming, 'traceparent');
  return value !== undefined && TRACEPARENT.test(value) ? value : undefined;
}

export function forwardedHeaders(incoming: IncomingMessage): [string, string][] {
  const trace = traceparentOf(incoming) === undefined ? [] : ['traceparent', 'tracestate'];
  return [...FORWARDED, ...trace].flatMap((name) => {
    const value = headerOf(incoming, name);
    return value === undefined ? [] : [[name, value] as [string, string]];
  });
}

const LENGTH_MAX = 255;

/** @throws Failure `invalid_request` */
export function idempotencyKeyOf(incoming: IncomingMessage): string | undefined {
  // The draft writes a quoted string (structured field), many clients a bare one; both are one key.
  const key = boundedHeader(incoming, 'idempotency-key')?.replace(/^"(.*)"$/, '$1');
  if (key === '') throw new Failure('invalid_request', 'idempotency-key must not be empty');
  return key;
}

/** A header that is stored. @throws Failure `invalid_request` */
export function boundedHeader(incoming: IncomingMessage, name: string): string | undefined {
  const value = headerOf(incoming, name);
  if (value === undefined) return undefined;
  if (value.length === 0 || value.length > LENGTH_MAX || !/^[\x20-\x7e]+$/.test(value)) {
    throw new Failure('invalid_request', `${name} must be 1 to ${LENGTH_MAX} printable characters`);
  }
  return value;
}

const TTL_MAX_MS = 7 * 86_400_000;

/**
 * Until when a write with `Prefer: respond-async` (RFC 7240) may wait; undefined without it.
 * @param expires the header `Tallyhook-Expires`; `ttlMs` from now when it is absent
 * @throws Failure `invalid_request` for an instant that is invalid, past, or too far ahead
 */
export function waitsUntil(
  prefer: string | undefined,
  expires: string | undefined,
  now: Instant,
  ttlMs: number,
): Instant | undefined {
  if (!prefersAsync(prefer)) return undefined;
  if (expires === undefined) return now + ttlMs;
  const at = parseInstant(expires.trim());
  if (at === undefined)
    throw new Failure('invalid_request', 'tallyhook-expires must be an RFC 3339 instant');
  if (at <= now) throw new Failure('invalid_request', 'tallyhook-expires is past');
  if (at > now + TTL_MAX_MS)
    throw new Failure('invalid_request', 'tallyhook-expires is more than 7 days ahead');
  return at;
}

function prefersAsync(prefer = ''): boolean {
  return prefer
    .split(',')
    .some((preference) => /^respond-async$/i.test(preference.split(';')[0]?.trim() ?? ''));
}
