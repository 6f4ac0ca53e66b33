/**
 * The database of this daemon, ready to work on: embedded or external, migrated, guarded, with its
 * partitions made and its clock followed. Everything that must hold before the first promise is
 * given.
 */
import { mkdir } from 'node:fs/promises';
import { type DatabaseClock, databaseClock } from '../db/clock.ts';
import { connect, type Db } from '../db/connect.ts';
import { type EmbeddedServer, openEmbedded } from '../db/embedded/embedded.ts';
import { insistOnGuards } from '../db/guards.ts';
import { migrate } from '../db/migrate.ts';
import { makePartitions } from '../db/partitions.ts';
import { WRITER } from '../db/roles.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Config } from './config/config.ts';

export interface Database {
  db: Db;
  clock: DatabaseClock;
  /** What a person should know about where the data are. */
  notes: string[];
  /** Starts the embedded server again if it died; does nothing for an external one. */
  revive(): Promise<void>;
  /** Closes the pool, then stops the embedded server unless another daemon uses it. */
  close(): Promise<void>;
}

/** Opens the database. @throws Failure `bad_setting`, DatabaseError */
export async function openDatabase(config: Config, log: Log): Promise<Database> {
  const embedded = config.databaseUrl ? undefined : await openOwn(config, log);
  const url = config.databaseUrl ?? embedded?.url ?? '';
  const migrated = await migrate(config.databaseOwnerUrl ?? url);
  if (migrated.length > 0) log.info({ migrated }, 'database migrated');
  const db = connect({
    url,
    role: WRITER,
    max: config.database.connections_max,
    statementTimeoutMs: config.database.statement_timeout_ms,
  });
  try {
    await insistOnGuards(db);
    const clock = await databaseClock(db);
    await makePartitions(db, clock.now());
    return { db, clock, ...ending(db, embedded, () => openOwn(config, log)) };
  } catch (error) {
    await db.end();
    await embedded?.stopUnlessUsed();
    throw error;
  }
}

function ending(db: Db, first: EmbeddedServer | undefined, reopen: () => Promise<EmbeddedServer>) {
  let embedded = first;
  return {
    notes: first?.notes ?? [],
    async revive() {
      if (!embedded) return;
      const again = await reopen();
      if (again.url !== embedded.url) {
        throw new Failure(
          'bad_setting',
          'the embedded Postgres had to move to another port; start the daemon again',
        );
      }
      embedded = again;
    },
    async close() {
      await db.end();
      await embedded?.stopUnlessUsed();
    },
  };
}

async function openOwn(config: Config, log: Log): Promise<EmbeddedServer> {
  // Others may pass through but not read: as root, Postgres runs as another user.
  await mkdir(config.dataDir, { recursive: true, mode: 0o711 });
  return openEmbedded({ directory: config.dataDir, log });
}
