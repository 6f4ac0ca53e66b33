/** An API key: whose it is, what it may do, and within which limits. */
import { document, id, instant, list, nullable, oneOf, optional, text } from '../fields.ts';
import { KINDS } from '../operations/operation.ts';
import { resource, type Shown } from '../resource.ts';

export const SCOPES = ['gateway', 'read', 'manage', 'decide', 'portal', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** The secret of a key, and how refusals and the settings describe it. */
export const SECRET_PATTERN = /^thk_[A-Za-z0-9_-]{32,200}$/;
export const SECRET_WORDS = 'thk_ and at least 32 letters, digits, - or _ (200 at most)';

/** True for a key that was let in by `portal` alone: it sees what belongs to its owner. */
export function seesOnlyOwn(scopes: readonly Scope[]): boolean {
  return scopes.includes('portal') && !scopes.includes('read') && !scopes.includes('admin');
}

export const key = resource(
  'Key',
  {
    id: id('key'),
    name: text('What uses it'),
    owner: text('The person or team that idempotency keys and approvals belong to'),
    scopes: list(oneOf(SCOPES)),
    limits: nullable(
      document(
        {
          kinds: optional(list(oneOf(KINDS), 'Allowed kinds of write')),
          operators: optional(list(text(), 'Operator numbers that a give may use')),
          amount_per_call: optional(text('The most that one write moves, its fee included')),
          amount_per_day: optional(
            text('The most that all writes move within any 24 hours, counted by the hour'),
          ),
        },
        'Limits of its writes, if any',
      ),
    ),
    created_at: instant(),
    expires_at: nullable(instant(undefined, { title: 'Expires' })),
    revoked_at: nullable(instant()),
    last_used_at: nullable(instant('To within a minute', { title: 'Last used' })),
  },
  { columns: ['name', 'owner', 'scopes', 'limits', 'expires_at', 'last_used_at'] },
);

/** Without a member that limit does not exist. */
export type KeyLimits = NonNullable<Shown<typeof key>['limits']>;

export const createdKey = resource('CreatedKey', {
  ...key.fields,
  key: text('thk_…; only in this response'),
});

/** What each scope allows. */
export const SCOPE_WORDS: Record<Scope, string> = {
  gateway: 'writes and reads of an app through the gateway',
  read: 'everything that the console shows, but keys, settings and the audit trail',
  manage: 'endpoints, deliveries and watches',
  decide: 'propose and approve outcomes and ends of drifts',
  portal: 'endpoints of its owner with their deliveries and replays, and nothing else',
  admin: 'all of it, keys, freeze and quarantine',
};
