/** SQL that counts endpoints. */
import type { Queryable } from '../../db/connect.ts';

/** The endpoints that are not deleted, by state. */
export async function countEndpointStates(
  db: Queryable,
): Promise<{ state: string; count: number }[]> {
  return db.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from tallyhook.endpoints
    where deleted_at is null group by state`;
}
