/** A program of ours run as a process, with exactly the environment that it is given. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

const ROOT = join(import.meta.dirname, '../..');

export interface Ended {
  code: number | null;
  out: string;
  err: string;
}

interface Place {
  cwd?: string;
  /** By default the command line. */
  program?: 'src/main.ts' | 'src/cli/tallyhook.ts';
  /** What it reads. */
  input?: string;
  /** After which it is killed. */
  limitMs?: number;
}

/** Before the test gives up, so that what a command printed that hangs is seen. */
const LIMIT_MS = 110_000;

export function startCommand(
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  { cwd = ROOT, program = 'src/cli/tallyhook.ts', input = '', limitMs }: Place = {},
) {
  const child = spawn(process.execPath, [join(ROOT, program), ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  // It may end without reading.
  child.stdin.on('error', () => {}).end(input);
  return child;
}

/** Waits for its end. */
export async function endOf(child: ReturnType<typeof startCommand>): Promise<Ended> {
  const [out, err] = [printedOn(child.stdout), printedOn(child.stderr)];
  const [code] = await once(child, 'close');
  return { code, out: out(), err: err() };
}

/** Runs a command; `text` is what it printed on both streams. */
export async function runCommand(
  env: NodeJS.ProcessEnv,
  ...args: string[]
): Promise<{ code: number | null; text: string }> {
  const child = startCommand(env, args, { limitMs: LIMIT_MS });
  const text = printedOn(child.stdout, child.stderr);
  const [code] = await once(child, 'close');
  return { code, text: text() };
}

function printedOn(...streams: Readable[]): () => string {
  let text = '';
  for (const stream of streams)
    stream.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
  return () => text;
}
