/**
 * A primary and a standby of the machine's own Postgres with its default configuration, behind one
 * address that follows a failover, as a floating address or a proxy does.
 */
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import postgres from 'postgres';
import { joinSockets } from './join-sockets.ts';
import { freePort, listen } from './listen.ts';
import { openPrograms } from './postgres-programs.ts';

export interface Servers {
  /** The superuser's URL of the server that takes writes. */
  url: string;
  /** That of the standby itself. */
  standbyUrl: string;
  /** Of both servers, as a client that looks for the primary itself gets it. */
  hostsUrl: string;
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
  const programs = await openPrograms(bin);
  const { folder, command } = programs;
  const data = (name: string) => join(folder, name);
  await programs.initialize('primary');
  const first = await freePort();
  await programs.start('primary', first);
  const second = await programs.startStandby('standby', first);
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
    await programs.stop(name, mode);
  };
  return {
    url: `postgres://postgres@127.0.0.1:${relay.port}/postgres`,
    standbyUrl: `postgres://postgres@127.0.0.1:${second}/postgres`,
    hostsUrl:
      `postgres://postgres@127.0.0.1:${first},127.0.0.1:${second}/postgres` +
      '?target_session_attrs=read-write',
    dump: (url) => command('pg_dump', '-d', url, '-Fc', '-f', data('dump')),
    async failOver() {
      await stop('primary', 'immediate');
      await command('pg_ctl', '-D', data('standby'), '-w', 'promote');
      relay.leadTo(second);
    },
    async close() {
      for (const name of alive) await stop(name, 'immediate').catch(() => {});
      relay.close();
      await programs.remove();
    },
  };
}

async function openRelay(port: number) {
  let target = port;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
    joinSockets(near, far, sockets);
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
