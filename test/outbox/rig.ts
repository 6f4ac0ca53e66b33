/** An outbox on a test database, and drafts that differ only in their subject. */
import type { Db } from '../../src/db/connect.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import type { EventDraft } from '../../src/outbox/events.ts';
import { makeOutbox, sequence } from '../../src/outbox/outbox.ts';

export function draft(subject: string, more: Partial<EventDraft> = {}): EventDraft {
  return {
    type: 'endpoint.test',
    subject,
    occurredAt: Date.UTC(2026, 0, 1),
    data: { endpoint_id: subject, reason: 'a test', url: 'https://example.com' },
    ...more,
  } as EventDraft;
}

export function openOutbox(db: Db, clock: Clock) {
  const outbox = makeOutbox({ clock, ids: makeIds(clock, systemRandom) });
  const emitDrafts = (...drafts: EventDraft[]) => db.begin((tx) => outbox.emit(tx, drafts));
  return {
    outbox,
    emitDrafts,
    /** Emits an event per subject, in a transaction of its own. */
    emit: (...subjects: string[]) => emitDrafts(...subjects.map((subject) => draft(subject))),
  };
}

/** Subscribes an endpoint to which no delivery can be made; returns how it is removed. */
export async function addBrokenEndpoint({ sql }: Db): Promise<() => Promise<unknown>> {
  await sql`
    insert into tallyhook.endpoints (id, url, event_types, ordering, signing, encrypted_secrets,
      state, state_at, subscribed_at, created_by, created_at)
    values ('ep_broken', 'https://example.com', '{*}', 'none', '{v1}', '', 'enabled', now(), now(),
      'test', now())`;
  return async () => sql`delete from tallyhook.endpoints where id = 'ep_broken'`;
}

/** Numbers events until none is left; returns how many. */
export async function numberAll(db: Db): Promise<number> {
  let sum = 0;
  for (let done = await sequence(db); done > 0; done = await sequence(db)) sum += done;
  return sum;
}
