#!/usr/bin/env node
/**
 * The entry of the command line. A Failure is printed as one line on standard error, exit code 1.
 */
import { Failure } from '../kernel/errors.ts';
import { makeProgram } from './commands.ts';

try {
  await makeProgram().parseAsync();
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`${error.detail ?? error.code}\n`);
  process.exit(1);
}
