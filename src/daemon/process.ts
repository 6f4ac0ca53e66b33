/**
 * A daemon as a process: what a person sees at the start, what signals do, and the exit code.
 * Standard output is for people, the log goes to standard error.
 */
import { Failure } from '../kernel/errors.ts';
import { printLine } from '../kernel/terminal.ts';
import { loadConfig } from './config/config.ts';
import { type RunningDaemon, startDaemon } from './lifecycle.ts';

/** The one major version of Node that this program is made for. */
const NODE_MAJOR = 24;

/** Runs until a signal ends it. Answers the exit code. */
export async function runDaemon(): Promise<number> {
  const major = Number(process.versions.node.split('.')[0]);
  if (major !== NODE_MAJOR) {
    printLine(
      `Tallyhook needs Node ${NODE_MAJOR}, not ${process.version}; npm start brings its own`,
    );
    return 1;
  }
  let daemon: RunningDaemon;
  try {
    daemon = await startDaemon(loadConfig());
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    printLine(error.detail ?? error.code);
    return 1;
  }
  banner(daemon);
  return untilSignal(daemon);
}

function banner(daemon: RunningDaemon): void {
  printLine(`Tallyhook is ready at ${daemon.url}`);
  printLine(`  console   ${daemon.url}/`);
  printLine(`  API       ${daemon.url}/api/openapi.json`);
  printLine(`  gateway   ${daemon.url}/v1/… (the service's own paths)`);
  if (daemon.sandboxUrl) {
    printLine(
      `  service   no UPSTREAM_* is set: the sandbox, here at ${daemon.sandboxUrl}/_sandbox`,
    );
  }
  for (const note of daemon.notes) printLine(`  note      ${note}`);
  if (daemon.adminKey) printLine(`  admin key ${daemon.adminKey} (shown once; keep it)`);
}

/**
 * SIGTERM and SIGINT drain and end; a second one does not hurry. Anything uncaught ends the
 * process.
 */
function untilSignal(daemon: RunningDaemon): Promise<number> {
  return new Promise((resolve) => {
    const end = () => {
      daemon.stop().then(
        () => resolve(0),
        (error: unknown) => {
          daemon.log.fatal({ err: error }, 'the stop failed');
          resolve(1);
        },
      );
    };
    process.on('SIGTERM', end);
    process.on('SIGINT', end);
    process.on('uncaughtException', (error) => {
      if (daemon.survives(error)) {
        daemon.log.warn(
          { err: error },
          'the database driver lost a connection; its pool was renewed',
        );
        return;
      }
      daemon.log.fatal({ err: error }, 'an error nobody caught ends the daemon');
      resolve(1);
    });
  });
}
