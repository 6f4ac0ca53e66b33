/**
 * `tallyhook sandbox`: the simulated service alone, until a signal ends it. A folder is used by one
 * sandbox at a time, be it this command's or a daemon's: two would write one change log.
 */
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { holdFolder } from '../db/folder-lock.ts';
import { systemClock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { makeLog } from '../kernel/log.ts';
import { printLine } from '../kernel/terminal.ts';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts';
import { untilSignal } from './signal.ts';

export interface SandboxCommand {
  port: number;
  host: string;
  seed: number;
  clientId: string;
  clientSecret: string;
  /** As a daemon's DATA_DIR: the world is kept in its folder `sandbox`. */
  dataDir?: string;
  live?: true;
  json?: true;
}

/**
 * Runs until SIGTERM or SIGINT. Answers the exit code.
 * @throws Failure `bad_setting` for a port or a folder that cannot be used
 */
export async function runSandbox(options: SandboxCommand): Promise<number> {
  const directory = options.dataDir && join(options.dataDir, 'sandbox');
  const release = directory ? await hold(directory) : undefined;
  const sandbox = await start(options, directory);
  printReady(options, sandbox);
  await untilSignal();
  await sandbox.close();
  await release?.();
  return 0;
}

async function hold(directory: string): Promise<() => Promise<void>> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const release = await holdFolder('sandbox', await realpath(directory));
    if (release) return release;
  } catch (error) {
    throw new Failure('bad_setting', `--data-dir: ${directory} cannot be used (${codeOf(error)})`);
  }
  throw new Failure('bad_setting', `--data-dir: another sandbox runs in ${directory}; stop it`);
}

async function start(options: SandboxCommand, directory: string | undefined): Promise<Sandbox> {
  const { port, host, seed, clientId, clientSecret, live } = options;
  try {
    return await startSandbox({
      port,
      host,
      seed,
      clientId,
      clientSecret,
      ...(directory ? { directory } : {}),
      clock: systemClock,
      log: makeLog('warn'),
      backgroundTraffic: live === true,
    });
  } catch (error) {
    if (error instanceof Failure) throw error;
    const code = codeOf(error);
    if (code === 'EADDRINUSE') {
      throw new Failure('bad_setting', `--port: ${port} is taken; 0 picks a free one`);
    }
    const where = directory ? ` and ${directory}` : '';
    throw new Failure('bad_setting', `${host}:${port}${where} cannot be used (${code})`);
  }
}

/** The code of an error of the operating system. @throws what is none, as it is */
function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  throw error;
}

function printReady({ clientId, clientSecret, seed, json }: SandboxCommand, sandbox: Sandbox) {
  const { url, control } = sandbox;
  const kept = control.state().seed;
  if (json) {
    const ready = { url, control: `${url}/_sandbox`, seed: kept };
    printLine(JSON.stringify({ ...ready, client_id: clientId, client_secret: clientSecret }));
    return;
  }
  printLine(`The service, simulated, is ready at ${url}`);
  if (kept !== seed) printLine(`  its world was begun with seed ${kept}, and keeps it`);
  printLine(`  control ${url}/_sandbox`);
  printLine('  for a daemon:');
  for (const host of ['BASE', 'AUTH', 'TX']) printLine(`    UPSTREAM_${host}_URL=${url}`);
  printLine(`    UPSTREAM_CLIENT_ID=${clientId}`);
  printLine(`    UPSTREAM_CLIENT_SECRET=${clientSecret}`);
}
