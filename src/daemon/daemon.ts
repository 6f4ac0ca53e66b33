/**
 * The door of this room: what the process entry and the commands may use. Configuration, a daemon's
 * life as a process or inside one, and the pieces that commands need without a daemon.
 */
export { type Config, loadConfig, type ServiceAddress } from './config/config.ts';
export { upstreamSettings } from './config/stage-settings.ts';
export { type Database, openDatabase } from './database.ts';
export { type RunningDaemon, startDaemon } from './lifecycle.ts';
export { runDaemon } from './process.ts';
export { insistOnService, openService } from './service.ts';
