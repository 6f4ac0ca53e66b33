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
  /** Makes the data of a server in this sub-folder, with the default configuration. */
  initialize(name: string, options?: InitOptions): Promise<void>;
  /** Copies the running primary of this port into this sub-folder, and starts it; the port. */
  startStandby(name: string, primary: number): Promise<number>;
  /** Starts the server whose data are in this sub-folder. */
  start(name: string, port: number): Promise<void>;
  stop(name: string, mode: string): Promise<void>;
  remove(): Promise<void>;
}

interface InitOptions {
  /** Further lines of postgresql.conf. */
  settings?: string;
  /** The file with the password that every client needs; by default none needs one. */
  passwordFile?: string;
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
  const start = (name: string, port: number) =>
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
    );
  return {
    folder,
    command,
    async initialize(name, { settings = '', passwordFile } = {}) {
      const auth = passwordFile ? ['scram-sha-256', '--pwfile', passwordFile] : ['trust'];
      await command('initdb', '-D', join(folder, name), '-U', 'postgres', '-A', ...auth);
      await appendFile(join(folder, name, 'postgresql.conf'), settings);
    },
    async startStandby(name, primary) {
      const source = ['-h', '127.0.0.1', '-p', String(primary), '-U', 'postgres'];
      await command('pg_basebackup', '-D', join(folder, name), '-R', '-X', 'stream', ...source);
      const port = await freePort();
      await start(name, port);
      return port;
    },
    start,
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
  await programs.initialize('data', { settings: configuration, passwordFile: file });
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
