/** A database of its own for a test file: a clone of the migrated template (about 40 ms). */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { WRITER } from '../../src/db/roles.ts';

export interface TestDatabase {
  /** The owner's login. */
  url: string;
  /** As the daemon works: in the writer role. */
  db: Db;
  /** As the owner, for looking at and breaking what the writer may not touch. */
  owner: Db;
  drop(): Promise<void>;
}

/** Clones the template. Call `drop` in afterAll. */
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
