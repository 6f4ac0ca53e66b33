/**
 * The writes that this process is sending, by their wallets and token. New writes are compared with
 * them, so that the database seldom has to refuse one because of open writes it did not know.
 */
import type { Instant } from '../../kernel/clock.ts';
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
