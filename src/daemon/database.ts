/**
 * Opens the daemon's database, embedded or external: migrated, its guards checked, its partitions
 * made, its clock measured.
 */
import { mkdir } from 'node:fs/promises';
import { type DatabaseClock, databaseClock, type ReadDatabaseTime } from '../db/clock/clock.ts';
import { connect, type Db } from '../db/connect.ts';
import { type EmbeddedServer, openEmbedded } from '../db/embedded/embedded.ts';
import { checkGuards } from '../db/guards.ts';
import { migrate } from '../db/migrate.ts';
import { makePartitions } from '../db/partitions.ts';
import { WRITER } from '../db/roles.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Config } from './config/config.ts';

export interface Database {
  db: Db;
  clock: DatabaseClock;
  /** Lines for the operator, such as where the data are. */
  notes: string[];
  /** Restarts the embedded server if it died; does nothing for an external one. */
  revive(): Promise<void>;
  /** Closes the pool, then stops the embedded server unless another daemon uses it. */
  close(): Promise<void>;
}

/** @throws Failure `bad_setting`, DatabaseError */
export async function openDatabase(
  config: Config,
  log: Log,
  readTime?: ReadDatabaseTime,
): Promise<Database> {
  let embedded = config.databaseUrl ? undefined : await openEmbeddedServer(config, log);
  const url = config.databaseUrl ?? embedded?.url ?? '';
  const migrated = await migrate(config.databaseOwnerUrl ?? url);
  if (migrated.length > 0) log.info({ migrated }, 'database migrated');
  const db = connect({
    url,
    role: WRITER,
    max: config.database.connections_max,
    statementTimeoutMs: config.database.statement_timeout_ms,
  });
  const close = async () => {
    await db.end();
    await embedded?.stopUnlessUsed();
  };
  try {
    await checkGuards(db);
    const clock = await databaseClock(db, log, readTime);
    await makePartitions(db, clock.now());
    const notes = embedded?.notes ?? [];
    const revive = async () => {
      if (embedded) embedded = await reopen(embedded, config, log);
    };
    return { db, clock, notes, revive, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function reopen(server: EmbeddedServer, config: Config, log: Log): Promise<EmbeddedServer> {
  const reopened = await openEmbeddedServer(config, log);
  if (reopened.url === server.url) return reopened;
  throw new Failure(
    'bad_setting',
    'the embedded Postgres restarted on another port; restart the daemon',
  );
}

async function openEmbeddedServer(config: Config, log: Log): Promise<EmbeddedServer> {
  // Other users may traverse but not read it: as root, Postgres runs as another user.
  await mkdir(config.dataDir, { recursive: true, mode: 0o711 });
  return openEmbedded({ directory: config.dataDir, log });
}
