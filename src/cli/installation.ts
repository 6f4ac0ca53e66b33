/** Access of commands to the database of this installation, which a daemon may be using. */
import { type Config, type Database, loadConfig, openDatabase } from '../daemon/daemon.ts';
import { hasEmbedded } from '../db/embedded/embedded.ts';
import { Failure } from '../kernel/errors.ts';
import { makeLog } from '../kernel/telemetry/log.ts';

/**
 * Opens the database (starting the embedded one if necessary), runs the work, and closes it.
 * @throws Failure `bad_setting`; it never creates or migrates a database
 */
export async function withDatabase<T>(
  work: (database: Database, config: Config) => Promise<T>,
): Promise<T> {
  // A command says at once that the database is away.
  const config = loadConfig(undefined, { database: { start_wait_ms: 0 } });
  await requireDatabase(config);
  const database = await openDatabase(config, makeLog('error'), { migrates: false });
  try {
    return await work(database, config);
  } finally {
    await database.close();
  }
}

/** @throws Failure `bad_setting` when no database is configured or was made by a start */
export async function requireDatabase({ databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl || (await hasEmbedded(dataDir))) return;
  throw new Failure(
    'bad_setting',
    `there is no database in ${dataDir}; set DATABASE_URL, or DATA_DIR to the folder of ` +
      'the daemon, or start it once',
  );
}
