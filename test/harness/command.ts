/** A command of the command line, run as a process. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const COMMAND = join(import.meta.dirname, '../../src/cli/tallyhook.ts');

/** Runs a command with exactly this environment; `text` is what it printed on both streams. */
export function runCommand(
  env: Record<string, string>,
  ...args: string[]
): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { PATH: process.env.PATH, ...env },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, text }));
  });
}
