/**
 * `tallyhook sandbox`: runs the simulated service until a signal. One process at a time may use a
 * data folder, daemons included.
 */
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { platform } from '../../db/platform.ts';
import { systemClock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { makeLog, printLine } from '../../kernel/telemetry/log.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';

export interface SandboxCommand {
  port: number;
  host: string;
  seed: number;
  clientId: string;
  clientSecret: string;
  /** Has the meaning of DATA_DIR: the world is stored in its folder `sandbox`. */
  dataDir?: string;
  live?: true;
  json?: true;
}

/** How long requests in flight may still be answered; some faults never answer. */
const DRAIN_MS = 5_000;

/**
 * Runs until SIGTERM or SIGINT.
 * @throws Failure `bad_setting` for a port or a folder that cannot be used
 */
export async function runSandbox(options: SandboxCommand): Promise<number> {
  const directory = options.dataDir && join(options.dataDir, 'sandbox');
  const release = directory ? await hold(directory) : undefined;
  const sandbox = await start(options, directory);
  printReady(options, sandbox);
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  await sandbox.close(DRAIN_MS);
  await release?.();
  return 0;
}

async function hold(directory: string): Promise<() => Promise<void>> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const release = await platform.tryLock('sandbox', await realpath(directory));
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
      throw new Failure('bad_setting', `--port: ${port} is in use; 0 picks a free one`);
    }
    const where = directory ? ` and ${directory}` : '';
    throw new Failure('bad_setting', `${host}:${port}${where} cannot be used (${code})`);
  }
}

/** @throws the error if it is not one of the operating system */
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
  printLine(`The simulated service is ready at ${url}`);
  if (kept !== seed) printLine(`  the stored world has seed ${kept}; --seed is ignored`);
  printLine(`  control ${url}/_sandbox`);
  printLine('  settings for a daemon:');
  for (const host of ['BASE', 'AUTH', 'TX']) printLine(`    UPSTREAM_${host}_URL=${url}`);
  printLine(`    UPSTREAM_CLIENT_ID=${clientId}`);
  printLine(`    UPSTREAM_CLIENT_SECRET=${clientSecret}`);
}
