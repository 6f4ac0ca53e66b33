/**
 * Authorization codes and tokens: issue, lookup, expiry. A secret is returned once and stored only
 * as its hash. A user token has a member, a client token has none.
 */
import { sha256Hex } from '../../kernel/json.ts';
import type { World } from '../world.ts';
import type { Grant, Member } from './records.ts';

/** Issues a code or token and returns its secret. */
export function issue(
  world: World,
  grant: Omit<Grant, 'expires_at' | 'used'>,
  lifetimeS: number,
): string {
  // With the app's own secret in the hash, the seed alone does not reveal issued secrets.
  const name = world.hex(grant.kind, world.next('grant'), 64);
  const secret = sha256Hex(`${world.app.client_secret}:${name}`).slice(0, 40);
  const expires_at = world.now() + lifetimeS * 1000;
  world.grants.put(sha256Hex(secret), { ...grant, expires_at, used: false });
  return secret;
}

/** Finds a grant by its secret, also an expired or used one. */
export function findGrant(world: World, kind: Grant['kind'], secret: string): Grant | undefined {
  const grant = world.grants.get(sha256Hex(secret));
  return grant?.kind === kind ? grant : undefined;
}

export function markUsed(world: World, secret: string): void {
  const key = sha256Hex(secret);
  const grant = world.grants.get(key);
  if (grant) world.grants.put(key, { ...grant, used: true });
}

export function isExpired(world: World, grant: Grant): boolean {
  return world.now() >= grant.expires_at;
}

export type Caller = { kind: 'client' } | { kind: 'user'; member: Member };

/** The owner of the valid access token in the header, or undefined. */
export function callerOf(world: World, authorization: string | undefined): Caller | undefined {
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1];
  const grant = secret === undefined ? undefined : findGrant(world, 'access', secret);
  if (!grant || isExpired(world, grant)) return undefined;
  if (grant.member_no === null) return { kind: 'client' };
  const member = world.members.get(grant.member_no.toString());
  return member && { kind: 'user', member };
}
