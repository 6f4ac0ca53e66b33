/** Debian's Postgres with its default configuration, in a folder of its own. */
import { appendFile, readFile } from 'node:fs/promises';
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
  const data = join(programs.folder, 'data');
  await programs.command('initdb', '-D', data, '-U', 'postgres', '-A', 'trust');
  await appendFile(join(data, 'postgresql.conf'), settings);
  await programs.start('data', port);
  const [pid] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
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
