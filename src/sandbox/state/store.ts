/**
 * The rows of the world on disk, in SQLite. What was written survives a killed process at any
 * instant, not a power failure.
 */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Failure } from '../../kernel/errors.ts';

/** A row as JSON, null for one that is deleted. */
export type StoredRow = [table: string, key: string, row: string | null];

export interface Store {
  /** All rows, in the order in which they were first written. */
  rows(): StoredRow[];
  /** Writes all or none. */
  write(rows: readonly StoredRow[]): void;
  close(): void;
}

/** Stores nothing, for a world in memory. */
export const noStore: Store = { rows: () => [], write: () => {}, close: () => {} };

/** The log is written before the tables, so that a kill leaves whole commits without any sync. */
const SCHEMA = `
  pragma locking_mode = exclusive;
  pragma journal_mode = wal;
  pragma synchronous = off;
  create table if not exists rows (
    n integer primary key, of text not null, key text not null, row text not null, unique (of, key)
  ) strict`;

/** @throws Failure `bad_setting` for what SQLite cannot read, or an earlier version wrote */
export function openStore(directory: string): Store {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const older = join(directory, 'world.jsonl');
  if (existsSync(older))
    throw new Failure(
      'bad_setting',
      `${older} is sandbox data of an earlier version, which this one cannot read; ` +
        'delete its folder',
    );
  const path = join(directory, 'world.db');
  // SQLite would make it readable for all; it gives its log the mode of this file.
  closeSync(openSync(path, 'a', 0o600));
  const db = new DatabaseSync(path);
  try {
    db.exec(SCHEMA);
  } catch (error) {
    db.close();
    throw new Failure(
      'bad_setting',
      `${path} cannot be read (${String(error)}); delete its folder`,
    );
  }
  const select = db.prepare('select of, key, row from rows order by n');
  const put = db.prepare(
    'insert into rows (of, key, row) values (?, ?, ?) on conflict do update set row = excluded.row',
  );
  const remove = db.prepare('delete from rows where of = ? and key = ?');
  return {
    rows: () => select.all().map((r) => [String(r.of), String(r.key), String(r.row)]),
    write(rows) {
      db.exec('begin');
      try {
        for (const [of, key, row] of rows)
          if (row === null) remove.run(of, key);
          else put.run(of, key, row);
        db.exec('commit');
      } catch (error) {
        // On a full disk SQLite may have ended the transaction.
        if (db.isTransaction) db.exec('rollback');
        throw error;
      }
    },
    close: () => db.close(),
  };
}
