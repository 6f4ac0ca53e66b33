/** The commands of README.md and docs/, run in a shell as somebody who reads them would. */
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { DEBIAN_BIN } from '../harness/postgres-programs.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = ['README.md', 'docs/apps.md', 'docs/operators.md']
  .map((file) => readFileSync(join(ROOT, file), 'utf8').replaceAll(/ \\\n +/g, ' '))
  .join('\n');
const run = promisify(execFile);

export type Environment = Record<string, string>;

/**
 * The command of README.md or docs/ that starts so, without its comment. `values` replace what it
 * has for example. @throws Error when there is none, or an example is missing
 */
export function command(start: string, values: Record<string, string> = {}): string {
  const line = README.split('\n').find((one) => one.startsWith(`    ${start}`));
  let text = line?.trim().replace(/ {2,}#.*$/, '') ?? '';
  for (const [example, value] of Object.entries(values)) {
    if (!text.includes(example)) throw new Error(`README: no ${example} in ${start} (${text})`);
    text = text.replaceAll(example, value);
  }
  if (text === '') throw new Error(`README: no command ${start}`);
  return text;
}

/** Runs a command to its end; `text` is what it printed on both streams. */
export async function shell(
  text: string,
  env: Environment,
): Promise<{ code: number; text: string }> {
  const ended = await run('bash', ['--norc', '-euc', text], {
    cwd: ROOT,
    env: withPrograms(env),
  }).then(
    (streams) => ({ code: 0, ...streams }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  return { code: ended.code, text: `${ended.stdout}${ended.stderr}` };
}

export interface Started {
  /** What it has printed so far. */
  text(): string;
  /** SIGTERM to all its processes, and waits for the end. */
  stop(): Promise<void>;
}

/** Starts a daemon and waits until it has printed its last line. @throws Error with its output */
export async function start(text: string, env: Environment): Promise<Started> {
  const child = spawn('bash', ['--norc', '-euc', text], {
    cwd: ROOT,
    env: withPrograms(env),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => reject(new Error(`it ended:\n${lines.join('\n')}`)));
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on('line', (line) => {
        lines.push(line);
        if (/^ {2}service /.test(line)) resolve();
      });
  });
  return {
    text: () => lines.join('\n'),
    async stop() {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
      await ended;
    },
  };
}

/** Nothing else of the environment of the tests. */
function withPrograms(env: Environment): Environment {
  return { HOME: process.env.HOME ?? '/', PATH: `${DEBIAN_BIN}:${process.env.PATH}`, ...env };
}
