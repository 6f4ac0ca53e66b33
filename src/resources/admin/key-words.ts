/** Keys in words of people. Pure. */
import type { Scope } from './key.ts';

/** What each scope allows. */
export const SCOPE_WORDS: Record<Scope, string> = {
  gateway: 'writes and reads of an app through the gateway',
  read: 'everything that the console shows, but keys, settings and the audit trail',
  manage: 'endpoints, deliveries and watches',
  decide: 'propose and approve outcomes and ends of drifts',
  admin: 'all of it, keys, freeze and quarantine',
};
