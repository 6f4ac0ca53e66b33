/** Who calls, and what its headers ask of us. */
import type { IncomingMessage } from 'node:http';
import { Failure } from '../kernel/errors.ts';
import { type Caller, isSecret, type Keys } from '../keys/keys.ts';
import { headerOf } from './http.ts';

/** A caller by its key, and its own token when it sent one beside the key. */
export interface Identity {
  caller: Caller;
  ownToken: string | undefined;
}

/** The caller by its key, as Bearer token or in `Tallyhook-Key`; undefined without a good one. */
export async function identify(
  keys: Keys,
  incoming: IncomingMessage,
): Promise<Identity | undefined> {
  const authorization = headerOf(incoming, 'authorization');
  const bearer = bearerOf(authorization);
  if (bearer && isSecret(bearer)) {
    const caller = await keys.authenticate(bearer);
    return caller && { caller, ownToken: undefined };
  }
  const key = headerOf(incoming, 'tallyhook-key');
  const caller = key ? await keys.authenticate(key) : undefined;
  return caller && { caller, ownToken: authorization };
}

/** The caller's own Authorization; a key of ours is nobody else's business. */
export function foreignAuthorization(incoming: IncomingMessage): string | undefined {
  const authorization = headerOf(incoming, 'authorization');
  return isSecret(bearerOf(authorization) ?? '') ? undefined : authorization;
}

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** What goes up: how to read the body, and what is wanted back. Nothing of the connection. */
const FORWARDED = [
  'content-type',
  'content-encoding',
  'accept',
  'accept-language',
  'user-agent',
  'cookie',
];

export function forwardedHeaders(incoming: IncomingMessage): [string, string][] {
  return FORWARDED.flatMap((name) => {
    const value = headerOf(incoming, name);
    return value === undefined ? [] : [[name, value] as [string, string]];
  });
}

const HEADER_TEXT_MAX = 255;

/** @throws Failure `invalid_request` */
export function idempotencyKeyOf(incoming: IncomingMessage): string | undefined {
  const written = boundedHeader(incoming, 'idempotency-key');
  // The draft writes a quoted string (structured field); clients send it bare as well: both are one
  // key.
  const key = written?.replace(/^"(.*)"$/, '$1');
  if (key === '') throw new Failure('invalid_request', 'idempotency-key must not be empty');
  return key;
}

/** A header of ours as text. @throws Failure `invalid_request` for one that cannot be kept */
export function boundedHeader(incoming: IncomingMessage, name: string): string | undefined {
  const value = headerOf(incoming, name);
  if (value === undefined) return undefined;
  if (value.length === 0 || value.length > HEADER_TEXT_MAX || !/^[\x20-\x7e]+$/.test(value)) {
    throw new Failure(
      'invalid_request',
      `${name} must be 1 to ${HEADER_TEXT_MAX} printable characters`,
    );
  }
  return value;
}
