/** Access of commands to the database of this installation, which a daemon may be using. */
import { type Config, type Database, loadConfig, openDatabase } from '../daemon/daemon.ts';
import { makeLog } from '../kernel/log.ts';

/** Opens the database (starting the embedded one if necessary), runs the work, and closes it. */
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
