/** An outbox over a clone of the database, and events that say nothing but where they belong. */
import type { Db } from '../../src/db/connect.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import type { EventDraft } from '../../src/outbox/events.ts';
import { type FanOut, makeOutbox } from '../../src/outbox/outbox.ts';

/** An event of that subject. */
export function draft(subject: string, more: Partial<EventDraft> = {}): EventDraft {
  return {
    type: 'endpoint.test',
    subject,
    occurredAt: Date.UTC(2026, 0, 1),
    data: { endpoint_id: subject, reason: 'a test', url: 'https://example.com' },
    ...more,
  } as EventDraft;
}

/** Emits in a transaction of its own. */
export function openOutbox(db: Db, clock: Clock, fanOut: FanOut = async () => {}) {
  const outbox = makeOutbox({ clock, ids: makeIds(clock, systemRandom), fanOut });
  return {
    outbox,
    emit: (...subjects: string[]) =>
      db.begin((tx) =>
        outbox.emit(
          tx,
          subjects.map((subject) => draft(subject)),
        ),
      ),
  };
}
