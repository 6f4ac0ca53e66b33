/**
 * Removes bodies of events, for people and by age. In the same commit deliveries that still wait
 * for one of them are cancelled: what was removed is not sent any more. A delivery in flight ends
 * by its attempt; if that fails, the next claim finds no body and cancels it.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Clock, DAY_MS, type Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { findTombstone, readAged, removeBodies, type StoredEvent } from '../../outbox/outbox.ts';
import type { removedBody } from '../../resources/delivery/event.ts';
import { EVENT_TYPES, patternsOf } from '../../resources/delivery/events.ts';
import type { Row } from '../../resources/resource.ts';
import { pendingDeliveries } from '../tables.ts';
import { deliveryIdsOf, endGone, isUnclaimed, makeNextDue, planByIndex } from './queue.ts';

export type Removal = ReturnType<typeof makeRemoval>;

interface Deps {
  db: Db;
  peopleDb: Db;
  clock: Clock;
  log: Log;
  /** Called when something may have become due. */
  wake: () => void;
}

/** Events that one transaction examines. */
const PAGE = 1_000;

export function makeRemoval({ db, peopleDb, clock, log, wake }: Deps) {
  /**
   * Up to where events were examined, by the age of removal: what is before has no body that is
   * due. Only of this process; a new one examines all once.
   */
  const reached = new Map<number, StoredEvent>();

  async function removePage(days: number, types: readonly string[], now: Instant) {
    const [before, after] = [now - days * DAY_MS, reached.get(days)];
    const page = await db.begin(async (tx) => {
      await planByIndex(tx);
      const { due, ...read } = await readAged(tx, { types, before, after, limit: PAGE });
      const removed = await removeBodies(tx, due, now);
      return { ...read, removed: removed.length, cancelled: await cancelOf(tx, removed, now) };
    });
    if (page.last) reached.set(days, page.last);
    return page;
  }

  return {
    /** Removes the body of an event; again it changes nothing. @throws Failure `not_found` */
    async removeBody(id: string): Promise<Row<typeof removedBody>> {
      const now = clock.now();
      const done = await peopleDb.begin(async (tx) => {
        await planByIndex(tx);
        const event = await findTombstone(tx, id);
        const removed = event ? await removeBodies(tx, [event], now) : [];
        const deliveriesCancelled = await cancelOf(tx, removed, now);
        return { ...(await findTombstone(tx, id)), deliveriesCancelled };
      });
      const { type, removedAt, sha256, deliveriesCancelled } = done;
      if (type === undefined || !removedAt || !sha256)
        throw new Failure('not_found', `no stored event ${id}`);
      if (deliveriesCancelled > 0) wake();
      return { id, type, removedAt, sha256, deliveriesCancelled };
    },

    /**
     * Removes the bodies of old events, in pages, until none is left or the signal aborts.
     * @param ages days by type, `group.*` or `*`
     */
    async removeOldBodies(ages: Record<string, number>, now: Instant, signal: AbortSignal) {
      for (const [days, types] of typesByAge(ages)) {
        const sum = { removed: 0, cancelled: 0 };
        for (let examined = PAGE; examined === PAGE && !signal.aborted; ) {
          const page = await removePage(days, types, now);
          sum.removed += page.removed;
          sum.cancelled += page.cancelled;
          examined = page.examined;
        }
        if (sum.removed > 0) log.info({ days, ...sum }, 'bodies of old events removed');
        if (sum.cancelled > 0) wake();
      }
    },
  };
}

/** The types that have each age, by the most exact pattern that has one. */
export function typesByAge(ages: Record<string, number>): Map<number, string[]> {
  const byAge = new Map<number, string[]>();
  for (const type of EVENT_TYPES) {
    const days = patternsOf(type)
      .map((pattern) => ages[pattern])
      .find((age) => age !== undefined);
    if (days !== undefined) byAge.set(days, [...(byAge.get(days) ?? []), type]);
  }
  return byAge;
}

/**
 * Cancels the pending deliveries of events except those in flight; returns how many. It locks no
 * endpoint, so a claim at the same time may defer the next delivery of a subject for a minute.
 */
export async function cancelOf(
  tx: Tx,
  events: readonly StoredEvent[],
  now: Instant,
): Promise<number> {
  if (events.length === 0) return 0;
  const ids = events.map(({ id }) => id);
  const ranges = ids.map(deliveryIdsOf);
  const cancelled = await tx.sql<{ endpointId: string; subject: string | null }[]>`
    with gone as (
      delete from tallyhook.pending_deliveries d using (
        select d.id
        from unnest(${ids}::uuid[], ${ranges.map(([first]) => first)}::uuid[],
          ${ranges.map(([, last]) => last)}::uuid[]) as e(id, first, last)
        join tallyhook.pending_deliveries d
          on d.id between e.first and e.last and d.event_id = e.id and ${isUnclaimed(tx, now)}
        order by d.id for update of d) c
      where d.id = c.id returning ${columnsOf(tx.sql, pendingDeliveries, 'd')}
    ), ended as (${endGone(tx, 'cancelled', now)})
    select 'ep_' || endpoint_id as endpoint_id, subject from gone`;
  await makeNextDue(tx, cancelled, now);
  return cancelled.length;
}
