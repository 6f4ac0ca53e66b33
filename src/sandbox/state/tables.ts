/**
 * Rows by key, in memory and on disk. Rows are replaced, never changed in place. A set of tables
 * tracks which rows changed since the last commit and writes them to the store together. What was
 * written survives a killed process at any instant, not a power failure.
 */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { z } from 'zod';
import { Failure } from '../../kernel/errors.ts';
import { jsonText, tryParseJson } from '../../kernel/json.ts';

export interface ReadTable<T> {
  get(key: string): T | undefined;
  values(): Iterable<T>;
}

export interface Table<T> extends ReadTable<T> {
  put(key: string, row: T): void;
  delete(key: string): void;
  keys(): Iterable<string>;
  size(): number;
  /** A number that every change increases. */
  version(): number;
}

export interface TableSet {
  /** @param changed called before each change with the current row */
  table<S extends z.ZodType>(
    name: string,
    schema: S,
    changed?: (key: string, before: z.output<S> | undefined) => void,
  ): Table<z.output<S>>;
  /** Fills the tables from the store; returns how many rows it has. */
  load(): number;
  commit(): void;
  /** Empties every table. */
  clear(): void;
}

export function makeTableSet(store: Store): TableSet {
  const tables = new Map<string, { table: Table<unknown>; schema: z.ZodType }>();
  let dirty = new Map<string, Set<string>>();
  return {
    table(name, schema, changed = () => {}) {
      const table = makeTable<unknown>((key, before) => {
        changed(key, before as z.output<typeof schema> | undefined);
        const keys = dirty.get(name);
        if (keys) keys.add(key);
        else dirty.set(name, new Set([key]));
      });
      tables.set(name, { table, schema });
      return table as Table<z.output<typeof schema>>;
    },
    load() {
      const rows = store.rows();
      for (const [name, key, text] of rows) {
        const entry = tables.get(name);
        const parsed = entry?.schema.safeParse(tryParseJson(text ?? ''));
        if (!entry || !parsed?.success)
          throw new Failure(
            'bad_setting',
            `the sandbox data was written by another version (${name}); delete its folder`,
          );
        entry.table.put(key, parsed.data);
      }
      dirty = new Map();
      return rows.length;
    },
    commit() {
      if (dirty.size === 0) return;
      const rows: StoredRow[] = [];
      for (const [name, keys] of dirty)
        for (const key of keys) {
          const row = tables.get(name)?.table.get(key);
          rows.push([name, key, row === undefined ? null : jsonText(row)]);
        }
      // Rows stay dirty when the write fails, and are written with the next change.
      store.write(rows);
      dirty = new Map();
    },
    clear() {
      for (const { table } of tables.values()) {
        for (const key of [...table.keys()]) table.delete(key);
      }
    },
  };
}

function makeTable<T>(changed: (key: string, before: T | undefined) => void): Table<T> {
  const rows = new Map<string, T>();
  let version = 0;
  return {
    get: (key) => rows.get(key),
    values: () => rows.values(),
    keys: () => rows.keys(),
    size: () => rows.size,
    version: () => version,
    put(key, row) {
      changed(key, rows.get(key));
      version += 1;
      rows.set(key, row);
    },
    delete(key) {
      const before = rows.get(key);
      if (before === undefined) return;
      changed(key, before);
      version += 1;
      rows.delete(key);
    },
  };
}

/** A row as JSON, null for one that is deleted. */
type StoredRow = [table: string, key: string, row: string | null];

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
