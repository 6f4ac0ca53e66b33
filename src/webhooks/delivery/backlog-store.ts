/** SQL of what waits to be delivered, for people. */
import type { Queryable } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';

/** Deliveries that wait, counted up to `max`, and since when the oldest of those counted. */
export async function countPending(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    select count(*)::int as waiting, min(queued_at) as since from (
      select queued_at from tallyhook.deliveries where state = 'pending' limit ${max}) x`;
  return rows[0] ?? { waiting: 0, since: null };
}
