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

/** @param what names the folder and the databases */
export async function openTemporaryServer(what: string): Promise<TemporaryServer> {
  const external = process.env.TEST_DATABASE_URL;
  const server = external ? externalServer(external) : await embeddedServer(what);
  const interrupted = () => void server.close().finally(() => process.exit(1));
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  return {
    async createDatabase(name) {
      const database = await server.create(`${what}_${name}`);
      await migrate(database);
      return database;
    },
    close() {
      process.off('SIGINT', interrupted);
      process.off('SIGTERM', interrupted);
      return server.close();
    },
  };
}

interface Server {
  create(name: string): Promise<string>;
  close(): Promise<void>;
}

async function embeddedServer(what: string): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), `tallyhook-${what}-`));
  // Postgres does not run as root, and has to reach its data.
  await chmod(folder, 0o711);
  const server = await openEmbedded({ directory: folder });
  return {
    create: (name) => create(server.url, name),
    async close() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Its databases carry the number of the process, so that two scripts can use one server. */
function externalServer(url: string): Server {
  const made: string[] = [];
  return {
    create(name) {
      const own = `${name}_${process.pid}`;
      made.push(own);
      return create(url, own);
    },
    async close() {
      for (const name of made) await execute(url, `drop database if exists ${name} with (force)`);
    },
  };
}

async function create(serverUrl: string, name: string): Promise<string> {
  await execute(serverUrl, `create database ${name}`);
  return Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
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
