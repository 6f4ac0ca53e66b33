/**
 * The server of a script: the one that TEST_DATABASE_URL names, as for the tests, or an embedded
 * one in a temporary folder. What it made is removed when it is closed, and when the process is
 * told to end: the server would outlive it.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { openEmbedded } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';

export interface TemporaryServer {
  /** Makes a migrated database; answers the owner's URL. */
  createDatabase(name: string): Promise<string>;
  close(): Promise<void>;
}

/** @param what names the folder and the databases, which also carry the number of the process */
export async function openTemporaryServer(what: string): Promise<TemporaryServer> {
  const external = process.env.TEST_DATABASE_URL;
  const made: string[] = [];
  const server = external
    ? { url: external, close: () => dropAll(external, made) }
    : await openFolder(what);
  const interrupted = () => void server.close().finally(() => process.exit(1));
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  return {
    async createDatabase(name) {
      const database = `${what}_${name}_${process.pid}`;
      await execute(server.url, `create database ${database}`);
      made.push(database);
      const url = Object.assign(new URL(server.url), { pathname: `/${database}` }).href;
      await migrate(url);
      return url;
    },
    close() {
      process.off('SIGINT', interrupted);
      process.off('SIGTERM', interrupted);
      return server.close();
    },
  };
}

async function openFolder(what: string) {
  const folder = await mkdtemp(join(tmpdir(), `tallyhook-${what}-`));
  // Postgres does not run as root, and has to reach its data.
  await chmod(folder, 0o711);
  const server = await openEmbedded({ directory: folder });
  const close = async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { url: server.url, close };
}

async function dropAll(url: string, databases: readonly string[]): Promise<void> {
  for (const name of databases) await execute(url, `drop database if exists ${name} with (force)`);
}

/**
 * Works as the writer on a new database of the server, which must not restart: commits do not wait
 * for the disk.
 */
export async function withVolatileDatabase<T>(
  server: TemporaryServer,
  name: string,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  const url = await server.createDatabase(name);
  const database = new URL(url).pathname.slice(1);
  await execute(url, `alter database ${database} set synchronous_commit = off`);
  const db = connect({ url, role: WRITER, max: 8 });
  try {
    return await work(db);
  } finally {
    await db.end();
  }
}

/** Runs one statement as the owner. */
export async function execute(url: string, statement: string): Promise<void> {
  const owner = postgres(url, { max: 1, onnotice: () => {} });
  await owner.unsafe(statement);
  await owner.end();
}
