/** Authentication of the gateway's requests, and the Authorization that is forwarded. */
import type { IncomingMessage } from 'node:http';
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
