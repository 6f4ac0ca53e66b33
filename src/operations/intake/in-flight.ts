/**
 * The intents that this process knows more of than the database shows.
 *
 * Writes in flight, by their wallets and token: new writes are compared with those that this
 * process is sending, so that the database seldom has to refuse one because of open writes that it
 * did not know.
 *
 * Unconfirmed intents: their commit result was lost and their callers got an error, but the
 * database may have recorded them. They were not sent. They are looked for until the statement
 * cannot be running any more, and then ended as not sent. Writes that may queue are excluded: their
 * callers learn that the outcome is not known, so a recorded one must stay. An intent that is
 * dropped here becomes `unknown` like any abandoned send.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Intent } from './attempts.ts';
import type { SentWrite } from './conflicts.ts';

interface InFlight extends SentWrite {
  /** See `lockNamesOf`. */
  names: readonly string[];
  /** From then on only the database knows of it. */
  sendDeadlineAt: Instant;
}

export interface WritesInFlight {
  add(write: InFlight): void;
  /** Its outcome, or that it is unknown, is in the database. */
  remove(id: string): void;
  listOn(names: readonly string[], now: Instant): SentWrite[];
}

export function makeWritesInFlight(): WritesInFlight {
  const writes = new Map<string, InFlight>();
  const idsByName = new Map<string, Set<string>>();

  function remove(id: string): void {
    for (const name of writes.get(id)?.names ?? []) {
      const ids = idsByName.get(name);
      ids?.delete(id);
      if (ids?.size === 0) idsByName.delete(name);
    }
    writes.delete(id);
  }

  return {
    add(write) {
      writes.set(write.id, write);
      for (const name of write.names)
        idsByName.set(name, (idsByName.get(name) ?? new Set()).add(write.id));
    },
    remove,
    listOn(names, now) {
      const ids = new Set(names.flatMap((name) => [...(idsByName.get(name) ?? [])]));
      return [...ids].flatMap((id) => {
        const write = writes.get(id);
        if (write && write.sendDeadlineAt > now) return [write];
        remove(id);
        return [];
      });
    },
  };
}

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
