/** A Postgres of its own that may be restarted, with or without recovery. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type EmbeddedServer, openEmbedded } from '../../../../src/db/embedded/embedded.ts';

export interface RestartedPostgres {
  /** The owner's URL; restarts keep it. */
  url: string;
  /** As an update of packages does. */
  restart(): Promise<void>;
  /** Ends every process at once, as a power cut does; the next start runs recovery. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** @param folder one that the server's user can traverse */
export async function openRestartedPostgres(folder: string): Promise<RestartedPostgres> {
  let server: EmbeddedServer = await openEmbedded({ directory: folder });
  const restart = async () => {
    await server.stop();
    server = await openEmbedded({ directory: folder });
  };
  return {
    url: server.url,
    restart,
    async crash() {
      const [pid] = (await readFile(join(server.dataFolder, 'postmaster.pid'), 'utf8')).split('\n');
      process.kill(Number(pid), 'SIGQUIT');
      await restart();
    },
    close: () => server.stop(),
  };
}
