/** Parts of statements that follow from the definition of a table: its columns stand once. */
import type { Sql } from './connect.ts';
import { type Core, getTableColumns } from './drizzle.ts';

/** Every column, as a select list. */
export function columnsOf(sql: Sql, table: Core.PgTable) {
  return sql(...namesOf(table));
}

/** The columns and values of one row, after `insert into …`; what is undefined has its default. */
export function rowOf<T extends Core.PgTable>(sql: Sql, table: T, row: T['$inferInsert']) {
  const given: Record<string, unknown> = row;
  const values = Object.entries(getTableColumns(table)).flatMap(([key, column]) => {
    const value = given[key];
    const stored = value === null ? null : column.mapToDriverValue(value);
    return value === undefined ? [] : [[column.name, stored]];
  });
  return sql(Object.fromEntries(values));
}

/** After `on conflict … do update set`: every column gets its new value, but for these. */
export function newValues(sql: Sql, table: Core.PgTable, ...except: string[]) {
  const names = namesOf(table).filter((name) => !except.includes(name));
  return sql.unsafe(names.map((name) => `${name} = excluded.${name}`).join(', '));
}

function namesOf(table: Core.PgTable): [string, ...string[]] {
  const [first = '', ...others] = Object.values(getTableColumns(table)).map(({ name }) => name);
  return [first, ...others];
}
