/** Empty databases on the test server, for what must begin before the first migration. */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, inject } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';

export interface EmptyDatabases {
  /**
   * Makes one more and answers its address, with the owner's login.
   * @param options of CREATE DATABASE
   */
  make(options?: string): Promise<string>;
  /** Runs one statement as the owner of the server. */
  run(statement: string): Promise<unknown>;
  drop(): Promise<void>;
}

/** Drops what is made after the tests of a file. */
export function useEmptyDatabases(): EmptyDatabases {
  const databases = emptyDatabases();
  afterAll(() => databases.drop());
  return databases;
}

export function emptyDatabases(): EmptyDatabases {
  const serverUrl = inject('serverUrl');
  const server = postgres(serverUrl, { max: 1, onnotice: () => {} });
  const made: string[] = [];
  return {
    async make(options = '') {
      const name = `t_empty_${randomBytes(6).toString('hex')}`;
      await server.unsafe(`create database ${name} template template0 ${options}`);
      made.push(name);
      const at = new URL(serverUrl);
      at.pathname = `/${name}`;
      return at.href;
    },
    run: (statement) => server.unsafe(statement),
    async drop() {
      for (const name of made) await server.unsafe(`drop database if exists ${name} with (force)`);
      await server.end();
    },
  };
}

/** Works on a connection of its own. */
export async function over<T>(url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const db = connect({ url, max: 1 });
  try {
    return await work(db);
  } finally {
    await db.end();
  }
}
