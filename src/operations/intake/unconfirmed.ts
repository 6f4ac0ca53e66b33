/**
 * Intents whose commit was asked for and never confirmed: their callers heard that nothing was
 * recorded, and nothing was sent, but the database may have them. They are looked for until no
 * statement of ours can be running any more, and ended as not sent.
 *
 * A write that may wait in the queue is none of them: its caller heard that this is not known, and
 * whoever repeats it is told what the database holds, so that must stand.
 *
 * Bounded in number and in time; what is forgotten becomes `unknown` as any send that nobody ends.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Attempt } from './store.ts';

export interface UnconfirmedIntents {
  add(attempts: readonly Attempt[], at: Instant): void;
  /** Those that may still turn up. */
  ids(now: Instant): string[];
  /** Tells that these were found and ended. */
  settled(ids: Iterable<string>): void;
}

/** Twice the longest that a statement may run. */
const KEPT_MS = 120_000;
const KEPT_MAX = 10_000;

export function makeUnconfirmedIntents(): UnconfirmedIntents {
  const until = new Map<string, Instant>();
  return {
    add(attempts, at) {
      for (const { intent } of attempts)
        if (intent.expiresAt === null && until.size < KEPT_MAX) until.set(intent.id, at + KEPT_MS);
    },
    ids(now) {
      for (const [id, end] of until) if (end < now) until.delete(id);
      return [...until.keys()];
    },
    settled(ids) {
      for (const id of ids) until.delete(id);
    },
  };
}
