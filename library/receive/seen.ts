/**
 * De-duplication by the id of the event: the same event may be delivered more than once, and a
 * captured delivery may be sent again while its timestamp is young.
 */

/** What is known of an event: nothing yet, being handled now, or handled. */
export type Claim = 'new' | 'busy' | 'done';

/** A store of your own, such as a table with the id as its key, makes it hold across restarts. */
export interface SeenStore {
  /**
   * Answers `new` to one caller alone, until that one calls `release`. A claim of a process that
   * died must end by itself, such as after a minute.
   */
  claim(id: string): Claim | Promise<Claim>;
  /** The event was handled. */
  done(id: string): unknown;
  /** The event was not handled; its next delivery is. */
  release(id: string): unknown;
}

/** Remembers that many newest events; a restart forgets them. */
export function memorySeen(max = 10_000): SeenStore {
  const handled = new Set<string>();
  const busy = new Set<string>();
  return {
    claim(id) {
      if (handled.has(id)) return 'done';
      if (busy.has(id)) return 'busy';
      busy.add(id);
      return 'new';
    },
    done(id) {
      busy.delete(id);
      handled.add(id);
      for (const oldest of handled) {
        if (handled.size <= max) break;
        handled.delete(oldest);
      }
    },
    release: (id) => busy.delete(id),
  };
}
