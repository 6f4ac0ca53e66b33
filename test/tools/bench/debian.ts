/** Debian's Postgres with its default configuration, in a folder of its own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../harness/listen.ts';
import { DEBIAN_BIN, openPrograms } from '../../harness/postgres-programs.ts';

export interface DebianServer {
  /** Of the superuser. */
  url: string;
  port: number;
  /** Of the first of its processes. */
  pid: number;
  close(): Promise<void>;
}

/** @param settings further lines of postgresql.conf */
export async function startDebian(settings = ''): Promise<DebianServer> {
  const programs = await openPrograms(DEBIAN_BIN);
  const port = await freePort();
  await programs.initialize('data', { settings });
  await programs.start('data', port);
  const pidFile = join(programs.folder, 'data', 'postmaster.pid');
  const [pid] = (await readFile(pidFile, 'utf8')).split('\n');
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    pid: Number(pid),
    async close() {
      await programs.stop('data', 'immediate');
      await programs.remove();
    },
  };
}
