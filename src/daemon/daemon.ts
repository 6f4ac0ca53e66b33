/**
 * The public module of the daemon, for the process entry and the commands. The stages are loaded
 * only when a daemon starts, because most commands need just the configuration and the database.
 */
import type { ReadDatabaseTime } from '../db/clock/clock.ts';
import type { Config } from './config/config.ts';
import type { RunningDaemon } from './lifecycle.ts';

export { type Config, loadConfig, type ServiceAddress } from './config/config.ts';
export { readSecret } from './config/secret-files.ts';
export { type Database, openDatabase, openReplica } from './database.ts';
export type { RunningDaemon } from './lifecycle.ts';
export type { MasterKeys } from './master-key.ts';
export { checkService, openService, SERVICE_SETTING, upstreamSettings } from './service.ts';

/**
 * Starts a daemon.
 * @param readTime reads the database's clock
 * @throws Failure such as `bad_setting`; nothing is left running then
 */
export async function startDaemon(
  config: Config,
  readTime?: ReadDatabaseTime,
): Promise<RunningDaemon> {
  return (await import('./lifecycle.ts')).startDaemon(config, readTime);
}

/** What proves and replaces the master key. */
export const masterKeyTools = () => import('./master-key.ts');

/** What the last verification of the ledger found. */
export const verificationTools = () => import('./workers/verification.ts');

/** What recognises a restored or copied database. */
export const identityTools = () => import('./identity.ts');

/** Runs a daemon until a signal arrives; returns the exit code. */
export async function runDaemon(): Promise<number> {
  return (await import('./process.ts')).runDaemon();
}
