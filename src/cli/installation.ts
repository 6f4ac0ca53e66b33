/** The database of this installation for a command: the same one that the daemon uses, adopted or started. */

import type { Config } from '../daemon/config.ts';
import { loadConfig } from '../daemon/daemon.ts';
import { type Database, openDatabase } from '../daemon/database.ts';
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
