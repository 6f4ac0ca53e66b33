/** A sandbox in its own process, for tests that kill it: `sandbox-process.ts <directory>`. */
import { systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';

const sandbox = await startSandbox({
  seed: 1,
  clientId: 'app',
  clientSecret: 'hush',
  clock: systemClock,
  directory: process.argv[2] ?? '',
});
process.stdout.write(`${sandbox.url}\n`);
