#!/usr/bin/env -S node --max-semi-space-size=4 --max-old-space-size=1024
/**
 * The entry of the command line. A Failure is printed as one line on standard error, exit code 1.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { Failure } from '../kernel/errors.ts';

// As in main.ts.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/compile'));
// The reading program, such as head, has ended.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});
try {
  const { makeProgram } = await import('./commands.ts');
  const program = makeProgram();
  const { addApiCommands, needsApi } = await import('./api/commands.ts');
  if (needsApi(program, process.argv.slice(2))) await addApiCommands(program);
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`${error.detail ?? error.code}\n`);
  process.exit(1);
}
