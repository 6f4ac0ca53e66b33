/**
 * SQL of watches and of the targets they add. Every transaction locks the watch before its target,
 * so that concurrent changes of the same watch cannot deadlock.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { and, asc, eq, gt, sql } from '../../db/drizzle.ts';
import { isoText } from '../../kernel/clock.ts';
import { watches } from '../tables.ts';
import { targetName } from '../targets.ts';

/** With the name of its target, such as `wallet:<addr, lower case>`. */
export type Watch = typeof watches.$inferSelect;

/** Inserts watches of different targets; returns them, or the existing ones, in any order. */
export async function insertWatches(tx: Tx, rows: readonly Watch[]): Promise<Watch[]> {
  if (rows.length === 0) return [];
  const ordered = rows.toSorted((a, b) => (a.target < b.target ? -1 : 1));
  return (
    tx.orm
      .insert(watches)
      .values(ordered)
      // An update without effect, because only updated rows are returned.
      .onConflictDoUpdate({ target: watches.target, set: { target: sql`excluded.target` } })
      .returning()
  );
}

/**
 * In the order of creation, after that id.
 * @param page `addr` only the watch of that wallet
 */
export async function listWatches(
  db: Queryable,
  page: { after?: string | undefined; addr?: string | undefined; limit: number },
): Promise<Watch[]> {
  const { after, addr } = page;
  const ofWallet = addr === undefined ? undefined : targetName({ kind: 'wallet', addr });
  return db.orm
    .select()
    .from(watches)
    .where(
      and(
        after === undefined ? undefined : gt(watches.id, after),
        ofWallet === undefined ? undefined : eq(watches.target, ofWallet),
      ),
    )
    .orderBy(asc(watches.id))
    .limit(page.limit);
}

export async function deleteWatch(tx: Tx, id: string): Promise<Watch | undefined> {
  const rows = await tx.orm.delete(watches).where(eq(watches.id, id)).returning();
  return rows[0];
}

/** Inserts watches of different targets; returns the targets that were not watched before. */
export async function insertNewWatches({ sql }: Tx, rows: readonly Watch[]): Promise<Set<string>> {
  const input = rows.map((row) => ({ ...row, createdAt: isoText(row.createdAt) }));
  const added = await sql<{ target: string }[]>`
    insert into tallyhook.watches
      (id, kind, target, addr, contract_id, token_id, created_at, created_by)
    select id, kind, target, addr, "contractId", "tokenId", "createdAt", "createdBy"
    from jsonb_to_recordset(${asJson(input)}::jsonb) as x(id text, kind text, target text,
      addr text, "contractId" numeric, "tokenId" numeric, "createdAt" timestamptz,
      "createdBy" text)
    order by target
    on conflict (target) do nothing returning target`;
  return new Set(added.map(({ target }) => target));
}

/** Those of the targets that are watched. */
export async function findWatched(db: Queryable, names: readonly string[]): Promise<Set<string>> {
  const rows = await db.sql<{ target: string }[]>`
    select target from tallyhook.watches where target = any(${names as string[]}::text[])`;
  return new Set(rows.map(({ target }) => target));
}

/** Deletes the watches of targets; returns those that were watched. */
export async function deleteWatches({ sql }: Tx, names: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ target: string }[]>`
    with locked as materialized (
      select id from tallyhook.watches where target = any(${names as string[]}::text[])
      order by target for update
    )
    delete from tallyhook.watches w using locked where w.id = locked.id returning target`;
  return new Set(rows.map(({ target }) => target));
}
