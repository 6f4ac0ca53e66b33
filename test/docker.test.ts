/**
 * The Dockerfile without Docker: its copies and its installation in a new folder, then its command
 * and its health check with its environment.
 */
import { execFile, spawn } from 'node:child_process';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { environmentOf } from './harness/daemon.ts';
import { useFolder } from './harness/folder.ts';
import { useWorld } from './harness/rig.ts';

const ROOT = join(import.meta.dirname, '..');
const run = promisify(execFile);
const world = await useWorld();
const app = useFolder();

it('The image starts with its command, becomes healthy, and stops on its signal', async () => {
  const lines = (await readFile(join(ROOT, 'Dockerfile'), 'utf8'))
    .replaceAll('\\\n', '')
    .split('\n');
  const install = lines.slice(0, lines.lastIndexOf('FROM debian:12-slim'));
  const copies = install.flatMap((line) => /^COPY (.+) (\S+)$/.exec(line)?.slice(1, 2) ?? []);
  for (const name of copies.flatMap((names) => names.split(' '))) {
    await cp(join(ROOT, name), join(app, name), { recursive: true });
  }
  expect(install).toContain('RUN npm ci --omit=dev');
  await run('npm', ['ci', '--omit=dev'], {
    cwd: app,
    env: process.env,
  });

  const command = jsonOf(lines, /^CMD (\[.*)$/);
  const health = jsonOf(lines, /^ *CMD (\[.*)$|^HEALTHCHECK.*?CMD (\[.*)$/);
  const env = {
    ...environmentOf(world.database.url, world.sandbox.url),
    ...variablesOf(lines),
    PATH: `${app}/node_modules/.bin:${process.env.PATH}`,
    PORT: '0',
    DATA_DIR: join(app, 'data'),
  };
  expect(env).toMatchObject({ NODE_ENV: 'production', HOST: '0.0.0.0' });
  const [program = '', ...args] = command;
  const daemon = spawn(program, args, { cwd: app, env });
  const port = await new Promise<string>((resolve, reject) => {
    daemon.once('exit', (code) => reject(new Error(`the daemon ended with ${code}`)));
    createInterface({ input: daemon.stdout }).on('line', (line) => {
      const ready = /ready at http:\/\/[^:]+:(\d+)/.exec(line);
      if (ready?.[1]) resolve(ready[1]);
    });
  });
  const [check = '', ...with_] = health;
  await run(check, with_, { cwd: app, env: { ...env, PORT: port } });
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  daemon.kill('SIGTERM');
  expect(await ended).toBe(0);
}, 120_000);

/** The variables that the image sets. */
function variablesOf(lines: string[]): Record<string, string> {
  const set = lines.flatMap((line) => {
    const given = /^ENV (.+)$/.exec(line)?.[1] ?? '';
    return [...given.matchAll(/\S+?=(?:"[^"]*"|\S+)/g)].map(([one]) => one.replaceAll('"', ''));
  });
  return Object.fromEntries(
    set.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
  );
}

function jsonOf(lines: string[], shape: RegExp): string[] {
  for (const line of lines) {
    const found = shape.exec(line);
    if (found) return JSON.parse(found[1] ?? found[2] ?? '[]');
  }
  throw new Error(`the Dockerfile has no ${shape}`);
}
