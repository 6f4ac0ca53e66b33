/** `tallyhook sandbox`: the simulated service alone, until a signal ends it. */
import { systemClock } from '../kernel/clock.ts';
import { makeLog } from '../kernel/log.ts';
import { printLine } from '../kernel/terminal.ts';
import { startSandbox } from '../sandbox/sandbox.ts';
import { untilSignal } from './signal.ts';

export interface SandboxCommand {
  port: number;
  host: string;
  seed: number;
  clientId: string;
  clientSecret: string;
  directory?: string;
  live?: true;
}

/** Runs until SIGTERM or SIGINT. */
export async function runSandbox(options: SandboxCommand): Promise<number> {
  const { live, directory, ...given } = options;
  const sandbox = await startSandbox({
    ...given,
    ...(directory === undefined ? {} : { directory }),
    clock: systemClock,
    log: makeLog('warn'),
    liveliness: live === true,
  });
  printLine(`The service, simulated, is ready at ${sandbox.url}`);
  printLine(`  client  ${given.clientId} / ${given.clientSecret}`);
  printLine(`  control ${sandbox.url}/_sandbox`);
  printLine(`  use it  as UPSTREAM_BASE_URL, UPSTREAM_AUTH_URL and UPSTREAM_TX_URL`);
  await untilSignal();
  await sandbox.close();
  return 0;
}
