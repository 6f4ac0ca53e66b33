/** Who an ID token names, and what that person may do. Pure. */
import { isOwner } from '../kernel/addresses.ts';
import { Failure } from '../kernel/errors.ts';
import type { Scope } from '../resources/admin/key.ts';

export interface SignInRule {
  /** Scopes of OpenID Connect that are asked for; `openid` among them. */
  requested: readonly string[];
  /** The claim that names the owner of the key, such as `email` or `sub`. */
  ownerClaim: string;
  /** The claim with the groups or roles of a person. */
  groupsClaim: string;
  /** The scopes of each group; `*` stands for every person. */
  groups: Readonly<Record<string, readonly Scope[]>>;
}

export type Claims = Readonly<Record<string, unknown>>;

const OWNER_MAX = 200;

/** @throws Failure `forbidden` with what the person can do about it */
export function personOf(
  claims: Claims,
  { ownerClaim, groupsClaim, groups }: SignInRule,
): { owner: string; scopes: readonly Scope[] } {
  const owner = claims[ownerClaim];
  if (typeof owner !== 'string' || !isOwner(owner) || owner.length > OWNER_MAX)
    throw new Failure('forbidden', `Your account has no ${ownerClaim}; ask who manages accounts.`);
  // Some providers accept any e-mail address until its owner has confirmed it.
  if (ownerClaim === 'email' && claims.email_verified !== true)
    throw new Failure('forbidden', 'The e-mail address of your account is not verified.');
  const own = [claims[groupsClaim]].flat().filter((name) => typeof name === 'string');
  const found = ['*', ...own].flatMap((name) =>
    Object.hasOwn(groups, name) ? (groups[name] ?? []) : [],
  );
  if (found.length === 0)
    throw new Failure('forbidden', `None of your groups (${groupsClaim}) may use this console.`);
  return { owner, scopes: [...new Set(found)] };
}
