/** Tables of the daemons and their leases, and the stored settings of the installation. */
import { instant, tallyhook } from './columns.ts';
import { bigint, text } from './drizzle.ts';

/** One row per start of a daemon; each start has a higher epoch. */
export const daemons = tallyhook.table('daemons', {
  id: text().primaryKey(),
  epoch: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().unique(),
  startedAt: instant('started_at').notNull(),
  aliveUntil: instant('alive_until').notNull(),
});

/** Work that one daemon at a time may do. The fencing token grows when the holder changes. */
export const leases = tallyhook.table('leases', {
  name: text().primaryKey(),
  daemonId: text('daemon_id').notNull(),
  fence: bigint({ mode: 'bigint' }).notNull(),
  until: instant().notNull(),
});

/** Settings stored in the database, such as the service that it belongs to. */
export const installation = tallyhook.table('installation', {
  name: text().primaryKey(),
  value: text().notNull(),
  setAt: instant('set_at').notNull(),
});
