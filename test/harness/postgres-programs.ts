/** The machine's own Postgres: its programs, and servers that they start in a temporary folder. */
import { execFile } from 'node:child_process';
import { appendFile, chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './listen.ts';

const run = promisify(execFile);

/** Where Debian 12 has them. */
export const DEBIAN_BIN = '/usr/lib/postgresql/15/bin';
const AS_POSTGRES = ['--reuid=postgres', '--regid=postgres', '--clear-groups'];

export interface PostgresPrograms {
  /** Exists until `remove`. */
  folder: string;
  /** @throws Error with `stderr` */
  command(name: string, ...args: string[]): Promise<void>;
  /** Starts the server whose data are in this sub-folder. */
  start(name: string, port: number): Promise<void>;
  stop(name: string, mode: string): Promise<void>;
  remove(): Promise<void>;
}

/** @param bin the folder of Postgres' programs, such as /usr/lib/postgresql/15/bin */
export async function openPrograms(bin: string): Promise<PostgresPrograms> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-servers-'));
  await chmod(folder, 0o777);
  // Postgres does not run as root.
  const user = process.geteuid?.() === 0 ? ['setpriv', ...AS_POSTGRES] : [];
  const command = async (name: string, ...args: string[]) => {
    const [program = '', ...rest] = [...user, join(bin, name), ...args];
    await run(program, rest, { cwd: folder, maxBuffer: 2 ** 30 });
  };
  return {
    folder,
    command,
    start: (name, port) =>
      command(
        'pg_ctl',
        '-D',
        join(folder, name),
        '-l',
        join(folder, `${name}.log`),
        '-w',
        'start',
        '-o',
        `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder}`,
      ),
    stop: (name, mode) => command('pg_ctl', '-D', join(folder, name), '-m', mode, '-w', 'stop'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export interface PasswordServer {
  /** The superuser's URL. */
  url: string;
  /** The same by the folder of its socket. */
  socketUrl: string;
  close(): Promise<void>;
}

/**
 * A server with Debian's default configuration, which wants a password from everybody.
 * @param configuration further lines of postgresql.conf
 */
export async function startPasswordServer(
  password: string,
  configuration = '',
): Promise<PasswordServer> {
  const programs = await openPrograms(DEBIAN_BIN);
  const file = join(programs.folder, 'password');
  await writeFile(file, password);
  await programs.command(
    'initdb',
    '-D',
    join(programs.folder, 'data'),
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    '--pwfile',
    file,
  );
  await appendFile(join(programs.folder, 'data', 'postgresql.conf'), configuration);
  const port = await freePort();
  await programs.start('data', port);
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    socketUrl: `postgres://postgres:${password}@/postgres?host=${programs.folder}&port=${port}`,
    async close() {
      await programs.stop('data', 'immediate');
      await programs.remove();
    },
  };
}
