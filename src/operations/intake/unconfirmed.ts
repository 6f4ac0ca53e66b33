/**
 * Unconfirmed intents: their commit result was lost and their callers got an error, but the
 * database may have recorded them. They were not sent. They are looked for until the statement
 * cannot be running any more, and then ended as not sent.
 *
 * Writes that may queue are excluded: their callers learn that the outcome is not known, so a
 * recorded one must stay. An intent that is dropped here becomes `unknown` like any abandoned send.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Intent } from './attempts.ts';

export interface UnconfirmedIntents {
  add(intents: readonly Pick<Intent, 'id' | 'expiresAt'>[], at: Instant): void;
  /** Those that may still get recorded. */
  ids(now: Instant): string[];
  /** Removes intents that were ended. */
  remove(ids: Iterable<string>): void;
}

/** Twice the statement timeout. */
const KEPT_MS = 120_000;
const KEPT_MAX = 10_000;

export function makeUnconfirmedIntents(): UnconfirmedIntents {
  const until = new Map<string, Instant>();
  return {
    add(intents, at) {
      for (const { id, expiresAt } of intents)
        if (expiresAt === null && until.size < KEPT_MAX) until.set(id, at + KEPT_MS);
    },
    ids(now) {
      for (const [id, end] of until) if (end < now) until.delete(id);
      return [...until.keys()];
    },
    remove(ids) {
      for (const id of ids) until.delete(id);
    },
  };
}
