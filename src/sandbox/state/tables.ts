/**
 * Rows by key, in memory. A row is never changed in place: it is replaced, and what it was is
 * told to whoever keeps the past or the journal.
 */

export interface ReadTable<T> {
  get(key: string): T | undefined;
  values(): Iterable<T>;
}

export interface Table<T> extends ReadTable<T> {
  put(key: string, row: T): void;
  delete(key: string): void;
  keys(): Iterable<string>;
  size(): number;
  /** Another number after each change. */
  version(): number;
}

/** @param changed told before each change, with the row as it was */
export function makeTable<T>(changed: (key: string, before: T | undefined) => void): Table<T> {
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

/** A table as it was: what changed since then is laid over it. */
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
