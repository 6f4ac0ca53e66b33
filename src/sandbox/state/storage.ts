/**
 * Tables that remember what changed since the last commit, and write it to the journal as one line:
 * `[["wallets","0x…",{…}],["tokens","1/5",null]]`. Loading lays the lines over each other.
 */
import type { z } from 'zod';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import type { JournalFile } from './change-log.ts';
import { makeTable, type Table } from './tables.ts';

export interface Storage {
  table<S extends z.ZodType>(
    name: string,
    schema: S,
    changed?: (key: string, before: z.output<S> | undefined) => void,
  ): Table<z.output<S>>;
  /** Fills the tables from committed lines, and begins the journal afresh from what they give. */
  load(lines: readonly unknown[]): void;
  commit(): void;
  /** Empties every table. */
  clear(): void;
}

/** The journal is begun afresh when it has grown by this much and by four times its base. */
const REWRITE_BYTES = 16 * 2 ** 20;
/** Rows of one line when everything is written. */
const ROWS_PER_LINE = 100;

type Row = [table: string, key: string, row: unknown];

export function makeStorage(journal: JournalFile): Storage {
  const tables = new Map<string, { table: Table<unknown>; schema: z.ZodType }>();
  let dirty = new Map<string, Set<string>>();

  const quiet = () => {
    dirty = new Map();
  };
  function* everything(): Iterable<string> {
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
            `the world of the sandbox was written by another version (${name}): begin a new one`,
          );
        }
        if (value === null) entry.table.delete(key);
        else entry.table.put(key, parsed.data);
      }
      quiet();
      journal.rewrite(everything());
    },
    commit() {
      if (dirty.size === 0) return;
      const rows: Row[] = [];
      for (const [name, keys] of dirty) {
        for (const key of keys) rows.push([name, key, tables.get(name)?.table.get(key) ?? null]);
      }
      // What could not be written stays due, and is written with the next change.
      journal.append(jsonText(rows));
      quiet();
      const { appended, base } = journal.size();
      if (appended > REWRITE_BYTES && appended > 4 * base) journal.rewrite(everything());
    },
    clear() {
      for (const { table } of tables.values()) {
        for (const key of [...table.keys()]) table.delete(key);
      }
    },
  };
}
