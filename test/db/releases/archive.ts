/**
 * All rows of a database as text, one JSON object a line, since npm ships no pg_dump; and back into
 * tables that migrations have made. What names the place of a database (which service and which
 * server it is) is left out.
 */
import type { Db } from '../../../src/db/connect.ts';

interface Table {
  name: string;
  columns: string[];
}

/** Tables with the columns that can be written. */
async function tablesOf({ sql }: Pick<Db, 'sql'>): Promise<Table[]> {
  return sql<Table[]>`
    select c.relname as name, array_agg(quote_ident(a.attname) order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      and not a.attisdropped and a.attgenerated = ''
    where c.relnamespace = 'tallyhook'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and c.relname not in ('migrations', 'applied_migrations', 'clock')
    group by c.relname order by c.relname`;
}

/** The rows of a database, each as `{"table": …, "row": …}`. */
export async function archive(db: Db): Promise<string[]> {
  const lines: string[] = [];
  for (const { name } of await tablesOf(db)) {
    const place = "where name not in ('service', 'identity', 'counter')";
    const rows = await db.sql.unsafe<{ line: string }[]>(
      `select json_build_object('table', '${name}', 'row', to_jsonb(t))::text as line
      from tallyhook.${name} t ${name === 'installation' ? place : ''}`,
    );
    lines.push(...rows.map(({ line }) => line));
  }
  return lines;
}

/** Fills the empty tables of a database, past its guards; needs a superuser. */
export async function unarchive(db: Db, lines: readonly string[]): Promise<void> {
  await db.begin(async ({ sql }) => {
    await sql`create temp table lines (line jsonb) on commit drop`;
    await sql`insert into lines select x::jsonb from unnest(${[...lines]}::text[]) x`;
    const guards = await sql<{ name: string; on: string }[]>`
      select quote_ident(tgname) as name, tgrelid::regclass::text as on from pg_trigger
      where tgenabled = 'A' and not tgisinternal`;
    const tables = await tablesOf({ sql });
    for (const { name } of tables)
      await sql.unsafe(`alter table tallyhook.${name} disable trigger all`);
    // A migration makes its row.
    await sql`delete from tallyhook.feed`;
    for (const { name, columns } of tables) {
      await sql.unsafe(
        `insert into tallyhook.${name} (${columns.join(', ')}) overriding system value
        select ${columns.map((column) => `r.${column}`).join(', ')} from lines l
        cross join lateral jsonb_populate_record(null::tallyhook.${name}, l.line->'row') r
        where l.line->>'table' = '${name}'`,
      );
      await sql.unsafe(`alter table tallyhook.${name} enable trigger all`);
    }
    for (const { name, on } of guards)
      await sql.unsafe(`alter table ${on} enable always trigger ${name}`);
    await continueSequences(sql);
  });
}

async function continueSequences(sql: Db['sql']): Promise<void> {
  const identities = await sql<{ table: string; column: string }[]>`
    select attrelid::regclass::text as table, attname as column from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'tallyhook'::regnamespace and attidentity <> ''`;
  for (const { table, column } of identities)
    await sql.unsafe(
      `select setval(pg_get_serial_sequence('${table}', '${column}'), max(${column}))
      from ${table} having max(${column}) is not null`,
    );
}

/** What finance reads, whose columns are never broken: each view as sorted lines of JSON. */
export async function readFinance({ sql }: Pick<Db, 'sql'>): Promise<Record<string, string[]>> {
  const read: Record<string, string[]> = {};
  for (const [view, changing] of Object.entries(FINANCE)) {
    const rows = await sql.unsafe<{ line: string }[]>(
      `select (to_jsonb(v) - '{${changing.join(',')}}'::text[])::text as line
      from finance_v1.${view} v order by 1`,
    );
    read[view] = rows.map(({ line }) => line);
  }
  return read;
}

/** A line of a view that an earlier program kept, without what depends on the present. */
export function keptRow(view: string, line: string): Record<string, unknown> {
  const row = Object.entries(JSON.parse(line) as Record<string, unknown>);
  return Object.fromEntries(row.filter(([name]) => !FINANCE[view]?.includes(name)));
}

/** The views that are compared, with their columns that depend on the present. */
const FINANCE: Record<string, string[]> = {
  accounts: [],
  journal: [],
  balances: [],
  'trial_balance()': [],
  operations: [],
  drifts: ['age', 'bucket', 'bucket_order'],
  nft_movements: [],
  nft_holdings: [],
  reports: [],
};
