/**
 * A daemon as a process: the banner, the signals and the exit code. Standard output is for people;
 * the log goes to standard error.
 */
import { flushCompileCache } from 'node:module';
import { Failure } from '../kernel/errors.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import { ROLES } from '../resources/admin/status.ts';
import { startTracing } from './config/tracing.ts';
import type { RunningDaemon } from './lifecycle.ts';
import { onStopSignals } from './stop-signals.ts';

const NODE_MAJOR = 24;

/** Runs until a signal arrives or its database is moved; returns the exit code. */
export async function runDaemon(): Promise<number> {
  const major = Number(process.versions.node.split('.')[0]);
  if (major !== NODE_MAJOR) {
    printLine(
      `Tallyhook requires Node ${NODE_MAJOR}, this is ${process.version}; npm start uses its own`,
    );
    return 1;
  }
  let daemon: RunningDaemon;
  try {
    const { loadConfig, requireMasterKey, requireService } = await import('./config/config.ts');
    const config = loadConfig();
    requireService(config);
    requireMasterKey(config);
    // Loaded after the configuration, so that a bad setting is reported at once.
    const { startDaemon } = await import('./lifecycle.ts');
    daemon = await startDaemon(config);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    printLine(error.detail ?? error.code);
    return 1;
  }
  const stopTracing = await startTracing(daemon.log);
  const { log, moved } = daemon;
  const ended = untilStopped(daemon, (ask) => {
    onStopSignals(ask);
    const end = () => {
      log.fatal({ err: moved.reason }, 'the database belongs to another service now: it stops');
      ask();
    };
    if (moved.aborted) end();
    else moved.addEventListener('abort', end);
  }).finally(stopTracing);
  printBanner(daemon);
  // Node writes the cache when a process exits, which a killed one never does.
  flushCompileCache();
  const code = await ended;
  return moved.aborted ? 1 : code;
}

/** In one write, so that a reader of its first line has the admin key as well. */
function printBanner(daemon: RunningDaemon): void {
  const { roles, url, metricsUrl, sandboxUrl, notes, adminKey } = daemon;
  const lines = [`Tallyhook is ready at ${url}`];
  if (roles.length < ROLES.length) lines.push(`  roles     ${roles.join(', ')}`);
  if (roles.includes('api')) {
    lines.push(`  console   ${url}/`, `  API       ${url}/docs`);
  }
  if (roles.includes('gateway')) lines.push(`  gateway   ${url}/v1/… (the paths of the service)`);
  if (metricsUrl) lines.push(`  metrics   ${metricsUrl}`);
  if (sandboxUrl)
    lines.push(`  service   sandbox at ${sandboxUrl}/_sandbox, because UPSTREAM_* is not set`);
  lines.push(...notes.map((note) => `  note      ${note}`));
  if (adminKey) lines.push(`  admin key ${adminKey} (shown only once; store it)`);
  printLine(lines.join('\n'));
}

/**
 * Runs until `listen` asks to stop; asking again changes nothing. Returns the exit code.
 * @param listen takes what stops the process
 */
export function untilStopped(
  { log, stop, recoversFrom }: Pick<RunningDaemon, 'log' | 'stop' | 'recoversFrom'>,
  listen: (ask: () => void) => void,
): Promise<number> {
  return new Promise((resolve) => {
    listen(() => {
      stop().then(
        () => resolve(0),
        (error: unknown) => {
          log.fatal({ err: error }, 'stopping failed');
          resolve(1);
        },
      );
    });
    process.on('uncaughtException', (error) => {
      if (recoversFrom(error)) {
        log.warn({ err: error }, 'database driver fault; the pool was replaced');
        return;
      }
      log.fatal({ err: error }, 'uncaught error; the process exits');
      resolve(1);
    });
  });
}
