/**
 * Rows by key, in memory. Rows are replaced, never changed in place. A set of tables tracks which
 * rows changed since the last commit and writes them to the store together.
 */
import type { z } from 'zod';
import { Failure } from '../../kernel/errors.ts';
import { jsonText, tryParseJson } from '../../kernel/json.ts';
import type { Store, StoredRow } from './store.ts';

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

/** A table as it was before the changes since then, given the former rows by key. */
export function overlaid<T>(
  table: Table<T>,
  former: ReadonlyMap<string, T | undefined>,
): ReadTable<T> {
  return {
    get: (key) => (former.has(key) ? former.get(key) : table.get(key)),
    *values() {
      for (const key of table.keys()) {
        const row = former.has(key) ? former.get(key) : table.get(key);
        if (row !== undefined) yield row;
      }
      for (const [key, row] of former) {
        if (row !== undefined && table.get(key) === undefined) yield row;
      }
    },
  };
}
