/**
 * Tables of the daemons themselves: who lives, who holds which lease, and what this database has
 * been told about itself (which service it watches). Written only by `db/`.
 */
import { bigint, text } from 'drizzle-orm/pg-core';
import { instant, tallyhook } from './columns.ts';

/**
 * One row per daemon start. The epoch rises with every start, so an older life can be told apart.
 */
export const daemons = tallyhook.table('daemons', {
  id: text().primaryKey(),
  epoch: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().unique(),
  startedAt: instant('started_at').notNull(),
  aliveUntil: instant('alive_until').notNull(),
});

/** Work that only one daemon may do at a time. The fence rises whenever the holder changes. */
export const leases = tallyhook.table('leases', {
  name: text().primaryKey(),
  daemonId: text('daemon_id').notNull(),
  fence: bigint({ mode: 'bigint' }).notNull(),
  until: instant().notNull(),
});

/** Facts fixed for the life of a database, such as the service it watches. */
export const installation = tallyhook.table('installation', {
  name: text().primaryKey(),
  value: text().notNull(),
  setAt: instant('set_at').notNull(),
});
