/**
 * Opens the daemon's database, embedded or external: migrated, its guards checked, its partitions
 * made, its clock measured.
 */
import { mkdir } from 'node:fs/promises';
import { type Login, reach } from '../db/access/reach.ts';
import { makeReads, type Reads } from '../db/access/replica.ts';
import { WRITER } from '../db/access/roles.ts';
import { checkGuards } from '../db/checks/guards.ts';
import { type DatabaseClock, databaseClock, type ReadDatabaseTime } from '../db/clock/clock.ts';
import { connect, type Db } from '../db/connect.ts';
import { type EmbeddedServer, openEmbedded } from '../db/embedded/embedded.ts';
import { migrate, missingMigrations, refuseUnmigrated } from '../db/migrate.ts';
import { makePartitions } from '../db/partitions.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Config } from './config/config.ts';

export interface Database extends Pools {
  /** Of reports. */
  reads: Reads;
  /** Contains the password. */
  url: string;
  clock: DatabaseClock;
  /** The data of the embedded server. */
  folder: string | undefined;
  /** Lines for the operator, such as where the data are. */
  notes: string[];
  /** Restarts the embedded server if it died; does nothing for an external one. */
  revive(): Promise<void>;
  /** Closes the pool, then stops the embedded server unless another daemon uses it. */
  close(): Promise<void>;
}

/** Connection pools, so that heavy reads and background work delay no write. */
interface Pools {
  /** Of the gateway, the heartbeat, and the start. */
  db: Db;
  workersDb: Db;
  /** Of API, console and reports: short statements, and a bound on those that wait. */
  peopleDb: Db;
}

/**
 * @param options.readTime reads the database's clock
 * @param options.migrates false: missing migrations are refused instead of applied
 * @throws Failure `bad_setting`, DatabaseError
 */
export async function openDatabase(
  config: Config,
  log: Log,
  {
    readTime,
    migrates = true,
  }: { readTime?: ReadDatabaseTime | undefined; migrates?: boolean } = {},
): Promise<Database> {
  let embedded = config.databaseUrl ? undefined : await openEmbeddedServer(config, log);
  const url = config.databaseUrl ?? embedded?.url ?? '';
  await prepare(config, url, log, migrates);
  const pools = openPools(url, config);
  const { db, peopleDb } = pools;
  const replica = openReplica(config);
  const reads = makeReads({ primary: peopleDb, replica, log, catchUpMs: REPLICA_MS });
  const close = async () => {
    await Promise.all([...Object.values(pools), replica].map((pool) => pool?.end()));
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
    return { ...pools, reads, url, clock, folder: embedded?.dataFolder, notes, revive, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Statements of people that may wait per connection of their pool. */
const WAITING_PER_CONNECTION = 128;

function openPools(url: string, { database }: Config): Pools {
  const { connections, statement_timeout_ms, people_statement_timeout_ms } = database;
  const common = { url, role: WRITER, statementTimeoutMs: statement_timeout_ms };
  return {
    db: connect({ ...common, max: connections.gateway, name: 'tallyhook gateway' }),
    workersDb: connect({ ...common, max: connections.workers, name: 'tallyhook workers' }),
    peopleDb: connect({
      ...common,
      max: connections.people,
      waitingMax: connections.people * WAITING_PER_CONNECTION,
      statementTimeoutMs: people_statement_timeout_ms,
      eachStatement: true,
      // A statement may wait as long as it may run.
      deadlineMs: 2 * people_statement_timeout_ms,
      name: 'tallyhook people',
    }),
  };
}

/** How long a report waits until the replica has what is committed, or until it answers at all. */
const REPLICA_MS = 10_000;

/** Undefined without one. The caller ends it. */
export function openReplica({ databaseReadUrl: url, database }: Config): Db | undefined {
  const max = database.connections.people;
  return url === undefined
    ? undefined
    : connect({ url, role: WRITER, max, deadlineMs: REPLICA_MS, name: 'tallyhook reads' });
}

/** Waits for an external Postgres, migrates, and checks that the daemon's login may work. */
async function prepare(config: Config, url: string, log: Log, migrates: boolean): Promise<void> {
  const { databaseUrl, databaseOwnerUrl: ownerUrl } = config;
  const reached = async (login: Login) => {
    if (databaseUrl)
      await reach(login, config.database.start_wait_ms, (line) => log.warn(`${line}; waiting`));
  };
  const login = { variable: 'DATABASE_URL', url };
  await reached(login);
  const missing = await missingMigrations(url);
  if (!migrates) refuseUnmigrated(missing);
  else if (missing.length > 0) {
    if (ownerUrl) await reached({ variable: 'DATABASE_OWNER_URL', url: ownerUrl });
    log.info({ missing }, 'migrating the database');
    const migrated = await migrate(ownerUrl ?? url);
    if (migrated.length > 0) log.info({ migrated }, 'database migrated');
  }
  await reached({ ...login, role: WRITER });
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
  return openEmbedded({ directory: config.dataDir, port: config.database.embedded_port, log });
}
