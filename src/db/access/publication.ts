/** The outbox as a change stream: a publication of events for readers of the WAL. */
import { connect } from '../connect.ts';

export const PUBLICATION = 'tallyhook_events';

/**
 * Makes the publication of events and of the names of their members, or gives the one that exists
 * this form. Every month of the partitioned table is published as the whole table. An update is
 * the removal of a body.
 * @returns the `wal_level` of the server, which must be logical before a reader can begin
 */
export async function publishEvents(url: string): Promise<string> {
  const db = connect({ url, max: 1 });
  try {
    const { sql } = db;
    const found = await sql`select from pg_publication where pubname = ${PUBLICATION}`;
    const name = sql(PUBLICATION);
    if (found.length === 0)
      await sql`create publication ${name} for table tallyhook.events, tallyhook.event_shapes
        with (publish = 'insert, update', publish_via_partition_root = true)`;
    else
      await db.begin(async (tx) => {
        await tx.sql`alter publication ${name} set table tallyhook.events, tallyhook.event_shapes`;
        await tx.sql`alter publication ${name}
          set (publish = 'insert, update', publish_via_partition_root = true)`;
      });
    const [row] = await sql<{ level: string }[]>`select current_setting('wal_level') as level`;
    return row?.level ?? '';
  } finally {
    await db.end();
  }
}
