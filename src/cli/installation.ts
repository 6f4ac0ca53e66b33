/**
 * The database of this installation for a command: the same one that the daemon uses, adopted or
 * started.
 */

import { type Config, type Database, loadConfig, openDatabase } from '../daemon/daemon.ts';
import { makeLog } from '../kernel/log.ts';

/** Runs the work on the installation's database and closes it again. */
export async function withDatabase<T>(
  work: (database: Database, config: Config) => Promise<T>,
): Promise<T> {
  const config = loadConfig();
  const database = await openDatabase(config, makeLog('error'));
  try {
    return await work(database, config);
  } finally {
    await database.close();
  }
}
