/** The public module of the daemon, for the process entry and the commands. */
export { type Config, loadConfig, type ServiceAddress } from './config/config.ts';
export { upstreamSettings } from './config/stage-settings.ts';
export { type Database, openDatabase } from './database.ts';
export { type RunningDaemon, startDaemon } from './lifecycle.ts';
export { runDaemon } from './process.ts';
export { checkService, openService } from './service.ts';
