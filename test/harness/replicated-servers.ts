/**
 * A primary and a standby of the machine's own Postgres with its default configuration, behind one
 * address that follows a failover, as a floating address or a proxy does.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { freePort, listen } from './listen.ts';

const run = promisify(execFile);

export interface Servers {
  /** The superuser's URL of the server that takes writes. */
  url: string;
  /** That of the standby itself. */
  standbyUrl: string;
  /** Reads the whole database, as a nightly backup does. */
  dump(url: string): Promise<void>;
  /** Stops the primary as a power cut would, and promotes the standby. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

/**
 * @param bin the folder of Postgres' programs, such as /usr/lib/postgresql/15/bin
 * @param synchronous a commit waits for the standby, so that a failover loses none
 */
export async function openServers(bin: string, synchronous: boolean): Promise<Servers> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-soak-'));
  await chmod(folder, 0o777);
  // Postgres does not run as root.
  const user = process.geteuid?.() === 0 ? ['setpriv', ...AS_POSTGRES] : [];
  const command = async (name: string, ...args: string[]) => {
    const [program = '', ...rest] = [...user, join(bin, name), ...args];
    await run(program, rest, { cwd: folder, maxBuffer: 2 ** 30 });
  };
  const [first, second] = [await freePort(), await freePort()];
  const data = (name: string) => join(folder, name);
  const start = (name: string, port: number) =>
    command(
      ...['pg_ctl', '-D', data(name), '-l', join(folder, `${name}.log`), '-w', 'start', '-o'],
      `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder}`,
    );
  await command('initdb', '-D', data('primary'), '-U', 'postgres', '-A', 'trust');
  await start('primary', first);
  const source = ['-h', '127.0.0.1', '-p', String(first), '-U', 'postgres'];
  await command('pg_basebackup', '-D', data('standby'), '-R', '-X', 'stream', ...source);
  await start('standby', second);
  if (synchronous) {
    const sql = postgres(`postgres://postgres@127.0.0.1:${first}/postgres`, { max: 1 });
    await sql.unsafe("alter system set synchronous_standby_names = '*'");
    await sql`select pg_reload_conf()`;
    await sql.end();
  }
  const relay = await openRelay(first);
  const alive = new Set(['primary', 'standby']);
  const stop = async (name: string, mode: string) => {
    alive.delete(name);
    await command('pg_ctl', '-D', data(name), '-m', mode, '-w', 'stop');
  };
  return {
    url: `postgres://postgres@127.0.0.1:${relay.port}/postgres`,
    standbyUrl: `postgres://postgres@127.0.0.1:${second}/postgres`,
    dump: (url) => command('pg_dump', '-d', url, '-Fc', '-f', data('dump')),
    async failOver() {
      await stop('primary', 'immediate');
      await command('pg_ctl', '-D', data('standby'), '-w', 'promote');
      relay.leadTo(second);
    },
    async close() {
      for (const name of alive) await stop(name, 'immediate').catch(() => {});
      relay.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const AS_POSTGRES = ['--reuid=postgres', '--regid=postgres', '--clear-groups'];

async function openRelay(port: number) {
  let target = port;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: await listen(server),
    leadTo(next: number) {
      target = next;
      cut();
    },
    close() {
      cut();
      server.close();
    },
  };
}
