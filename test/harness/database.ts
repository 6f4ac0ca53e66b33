/** A database of its own for a test file: a clone of the migrated template (about 40 ms). */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, inject } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';

export interface TestDatabase {
  /** The owner's login. */
  url: string;
  /** As the daemon works: in the writer role. */
  db: Db;
  /** As the owner, for looking at and breaking what the writer may not touch. */
  owner: Db;
  drop(): Promise<void>;
}

/** A database for the tests of one file, dropped after them. */
export async function useDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  afterAll(() => database.drop());
  return database;
}

/** Clones the template. Call `drop` at the end. */
export async function createDatabase(): Promise<TestDatabase> {
  const serverUrl = inject('serverUrl');
  const name = `t_${randomBytes(6).toString('hex')}`;
  const server = postgres(serverUrl, { max: 1, onnotice: () => {} });
  await server.unsafe(`create database ${name} template ${inject('template')}`);
  const at = new URL(serverUrl);
  at.pathname = `/${name}`;
  const db = connect({ url: at.href, role: WRITER, max: 6 });
  const owner = connect({ url: at.href, max: 2 });
  return {
    url: at.href,
    db,
    owner,
    async drop() {
      await Promise.all([db.end(), owner.end()]);
      await server.unsafe(`drop database if exists ${name} with (force)`);
      await server.end();
    },
  };
}
