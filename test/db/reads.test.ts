/**
 * No regular query of a stage or the API reads a table that grows, or an index of one, from end to
 * end: with statistics from when the tables were empty and with fresh ones, and with plans for the
 * parameters and generic ones. Postgres counts the rows that each scan reads, in functions too.
 *
 * `STORED=5000000 npx vitest run test/db/reads.test.ts` repeats it on five million operations.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import { useDatabase } from '../harness/database.ts';
import { until } from '../harness/until.ts';
import { type Known, READS } from './growth/reads.ts';
import { storeHistory } from './growth/stored.ts';

const STORED = Number(process.env.STORED ?? 60_000);
const READ_MAX = 5_000;
const LONG_MS = 3_600_000;

const database = await useDatabase();
let known: Known;

beforeAll(async () => {
  await storeHistory(database.url, STORED);
  const rows = await database.owner.sql<Known[]>`
    select o.id, (select id from tallyhook.operations where state = 'sending' limit 1) as open_id,
      o.tx_log_no, m.tx_hash, 'evt_' || substr(o.id, 4) as event_id, o.recorded_at as middle_at,
      'dlv_' || substr(o.id, 4) as delivery_id
    from tallyhook.operations o join tallyhook.operations m on m.token_id = o.tx_log_no
    where o.tx_log_no = ${Math.floor(STORED / 6) * 3}`;
  known = rows[0] as Known;
  // Else the scans of this session count later.
  await database.owner.sql`select pg_stat_force_next_flush()`;
}, LONG_MS);

/** Rows read so far, by table for sequential scans and by index. */
async function rowsRead(): Promise<Map<string, number>> {
  const rows = await database.owner.sql<{ name: string; rows: bigint }[]>`
    select relname as name, seq_tup_read as rows from pg_stat_user_tables
    where schemaname = 'tallyhook'
    union all
    select indexrelname, idx_tup_read from pg_stat_user_indexes where schemaname = 'tallyhook'`;
  return new Map(rows.map(({ name, rows: read }) => [name, Number(read)]));
}

/** Runs one read in a session of its own, whose end publishes its counts. */
async function scansOf(name: string): Promise<string[]> {
  const before = await rowsRead();
  const session = `reads ${name}`.slice(0, 40);
  const db = connect({ url: database.url, role: WRITER, max: 1, name: session });
  try {
    await READS[name]?.(db, known);
  } finally {
    await db.end();
  }
  await until(
    async () => {
      const rows = await database.owner.sql`
        select from pg_stat_activity
        where application_name = ${session} and datname = current_database()`;
      return rows.length === 0 ? true : undefined;
    },
    { everyMs: 2 },
  );
  return [...(await rowsRead())].flatMap(([relation, rows]) => {
    const read = rows - (before.get(relation) ?? 0);
    return read > READ_MAX ? [`${read} rows of ${relation}`] : [];
  });
}

describe.each(['of empty tables', 'that are fresh'])('With statistics %s', (statistics) => {
  beforeAll(async () => {
    if (statistics === 'that are fresh') await database.owner.sql`vacuum (analyze)`;
  }, LONG_MS);

  describe.each(['force_custom_plan', 'force_generic_plan'])('and plan_cache_mode %s', (mode) => {
    beforeAll(async () => {
      const { pathname } = new URL(database.url);
      await database.owner.sql.unsafe(
        `alter database ${pathname.slice(1)} set plan_cache_mode = ${mode}`,
      );
    });

    it.each(Object.keys(READS))(
      '%s reads few rows',
      async (name) => {
        expect(await scansOf(name)).toEqual([]);
      },
      LONG_MS,
    );
  });
});
