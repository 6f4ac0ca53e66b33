/** Tables of the daemons, their leases and their clock, and the settings of the installation. */
import { instant, tallyhook } from './columns.ts';
import { bigint, boolean, customType, doublePrecision, integer, text } from './drizzle.ts';

/** With the microseconds of the server, for comparison in SQL only. */
const exactInstant = customType<{ data: string }>({ dataType: () => 'timestamptz(6)' });

/** One row per start of a daemon. */
export const daemons = tallyhook.table('daemons', {
  id: text().primaryKey(),
  startedAt: instant('started_at').notNull(),
  aliveUntil: instant('alive_until').notNull(),
  /** Those that it performs now; one whose process is down is missing. */
  roles: text().array().notNull(),
  /** When the server started in which it last proved the database, and the file of this table. */
  serverStart: exactInstant('server_start').notNull(),
  dataFile: text('data_file').notNull(),
  /** Requests of apps per second that the service answered without throttling. */
  appPerS: doublePrecision('app_per_s').notNull().default(0),
  /** Whether it empties `roles` when it stops; programs of release 0.2.0 do not. */
  retires: boolean().notNull().default(false),
});

/** Work that one daemon at a time may do. The fencing token grows when the holder changes. */
export const leases = tallyhook.table('leases', {
  name: text().primaryKey(),
  daemonId: text('daemon_id').notNull(),
  fence: bigint({ mode: 'bigint' }).notNull(),
  until: instant().notNull(),
});

/** One row: what `clock/slew.ts` adds to the time of the database, and the time reached. */
export const clock = tallyhook.table('clock', {
  id: integer().primaryKey(),
  steps: integer().notNull(),
  correctionMs: doublePrecision('correction_ms').notNull(),
  setAt: instant('set_at').notNull(),
  endsAt: instant('ends_at').notNull(),
  highestAt: instant('highest_at').notNull(),
});

/** Settings stored in the database, such as the service that it belongs to. */
export const installation = tallyhook.table('installation', {
  name: text().primaryKey(),
  value: text().notNull(),
  setAt: instant('set_at').notNull(),
});
