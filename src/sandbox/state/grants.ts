/**
 * Codes and tokens of the authorization service: issuing, finding, expiry. A secret is shown once
 * and kept only as its hash. Client tokens and user tokens differ in having a member.
 */
import { sha256Hex } from '../../kernel/json.ts';
import type { World } from '../world.ts';
import type { Grant, Member } from './records.ts';

/** Issues a secret and keeps its hash. */
export function issue(
  world: World,
  grant: Omit<Grant, 'expires_at' | 'used'>,
  lifetimeS: number,
): string {
  // The app's own secret keeps the issued ones from being guessed by whoever knows the seed.
  const name = world.hex(grant.kind, world.next('grant'), 64);
  const secret = sha256Hex(`${world.app.client_secret}:${name}`).slice(0, 40);
  const expires_at = world.now() + lifetimeS * 1000;
  world.grants.put(sha256Hex(secret), { ...grant, expires_at, used: false });
  return secret;
}

/** The grant of a secret, expired or not, or undefined for one that was never issued. */
export function findGrant(world: World, kind: Grant['kind'], secret: string): Grant | undefined {
  const grant = world.grants.get(sha256Hex(secret));
  return grant?.kind === kind ? grant : undefined;
}

/** Marks a grant as used; it can still be found. */
export function useUp(world: World, secret: string): void {
  const key = sha256Hex(secret);
  const grant = world.grants.get(key);
  if (grant) world.grants.put(key, { ...grant, used: true });
}

export function isExpired(world: World, grant: Grant): boolean {
  return world.now() >= grant.expires_at;
}

export type Caller = { kind: 'client' } | { kind: 'user'; member: Member };

/** Whose valid access token the header carries, or undefined. */
export function callerOf(world: World, authorization: string | undefined): Caller | undefined {
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1];
  const grant = secret === undefined ? undefined : findGrant(world, 'access', secret);
  if (!grant || isExpired(world, grant)) return undefined;
  if (grant.member_no === null) return { kind: 'client' };
  const member = world.members.get(grant.member_no.toString());
  return member && { kind: 'user', member };
}
