/**
 * Rows by key, in memory. Rows are replaced, never changed in place. A set of tables tracks which
 * rows changed since the last commit and writes them to the change log as one line:
 * `[["wallets","0x…",{…}],["tokens","1/5",null]]`.
 */
import type { z } from 'zod';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import type { ChangeLog } from './change-log.ts';

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
  /** Fills the tables from committed lines and rewrites the change log from the result. */
  load(lines: readonly unknown[]): void;
  commit(): void;
  /** Empties every table. */
  clear(): void;
}

/** The change log is rewritten once it has grown by this and by four times its base. */
const REWRITE_BYTES = 16 * 2 ** 20;
const ROWS_PER_LINE = 100;

type Row = [table: string, key: string, row: unknown];

export function makeTableSet(changeLog: ChangeLog): TableSet {
  const tables = new Map<string, { table: Table<unknown>; schema: z.ZodType }>();
  let dirty = new Map<string, Set<string>>();

  function* allRows(): Iterable<string> {
    let rows: Row[] = [];
    for (const [name, { table }] of tables) {
      for (const key of table.keys()) {
        rows.push([name, key, table.get(key)]);
        if (rows.length < ROWS_PER_LINE) continue;
        yield jsonText(rows);
        rows = [];
      }
    }
    if (rows.length > 0) yield jsonText(rows);
  }

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
    load(lines) {
      for (const row of lines.flatMap((line) => (Array.isArray(line) ? line : [line]))) {
        const [name, key, value] = Array.isArray(row) ? row : [];
        const entry = tables.get(String(name));
        const parsed = value === null ? { data: null } : entry?.schema.safeParse(value);
        if (!entry || typeof key !== 'string' || parsed?.data === undefined) {
          throw new Failure(
            'bad_setting',
            `the sandbox data was written by another version (${name}); delete its folder`,
          );
        }
        if (value === null) entry.table.delete(key);
        else entry.table.put(key, parsed.data);
      }
      dirty = new Map();
      changeLog.rewrite(allRows());
    },
    commit() {
      if (dirty.size === 0) return;
      const rows: Row[] = [];
      for (const [name, keys] of dirty) {
        for (const key of keys) rows.push([name, key, tables.get(name)?.table.get(key) ?? null]);
      }
      // Rows stay dirty when the write fails, and are written with the next change.
      changeLog.append(jsonText(rows));
      dirty = new Map();
      const { appended, base } = changeLog.size();
      if (appended > REWRITE_BYTES && appended > 4 * base) changeLog.rewrite(allRows());
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
