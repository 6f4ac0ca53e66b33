/** SQL of what was learned of how long writes take to show. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Waits } from './hazard.ts';

/** Of so many kinds and contracts; of others it is forgotten, the one not seen longest first. */
const NAMES_MAX = 500;
const DIGITS = 1e6;

export async function loadWaits(db: Queryable): Promise<Map<string, Waits>> {
  const rows = await db.sql<{ name: string; counts: number[] }[]>`
    select name, counts from tallyhook.waits`;
  return new Map(rows.map(({ name, counts }) => [name, counts]));
}

/** Serializes daemons that learn, until the end of the transaction. */
export async function lockWaits(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.waits'))`;
}

export async function saveWaits(
  tx: Tx,
  changed: ReadonlyMap<string, Waits>,
  now: Instant,
): Promise<void> {
  const rows = [...changed].map(([name, counts]) => ({
    name,
    counts: counts.map((count) => Math.round(count * DIGITS) / DIGITS),
  }));
  await tx.sql`
    insert into tallyhook.waits as w (name, counts, learned_at)
    select name, counts, ${isoText(now)} from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x(name text, counts jsonb)
    on conflict (name) do update set counts = excluded.counts, learned_at = excluded.learned_at`;
  await tx.sql`
    delete from tallyhook.waits where name in (
      select name from tallyhook.waits order by learned_at desc, name offset ${NAMES_MAX})`;
}
