/**
 * SQL of watches and of the targets they add. Every transaction locks the watch before its target,
 * so that concurrent changes of the same watch cannot deadlock.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { and, asc, eq, gt, notExists, or, type SQL, sql } from '../../db/drizzle.ts';
import type { Instant } from '../../kernel/clock.ts';
import { operations } from '../../operations/tables.ts';
import { targets, watches } from '../tables.ts';

export interface Watch {
  id: string;
  kind: string;
  /** The name of the target, such as `wallet:<addr, lower case>`. */
  target: string;
  addr: string | null;
  contractId: bigint | null;
  tokenId: bigint | null;
  createdAt: Instant;
  createdBy: string;
}

const COLUMNS = {
  id: watches.id,
  kind: watches.kind,
  target: watches.target,
  addr: watches.addr,
  contractId: watches.contractId,
  tokenId: watches.tokenId,
  createdAt: watches.createdAt,
  createdBy: watches.createdBy,
};

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
      .returning(COLUMNS)
  );
}

/** In the order of creation, after that id. */
export async function listWatches(
  db: Queryable,
  page: { after?: string | undefined; limit: number },
): Promise<Watch[]> {
  return db.orm
    .select(COLUMNS)
    .from(watches)
    .where(page.after === undefined ? undefined : gt(watches.id, page.after))
    .orderBy(asc(watches.id))
    .limit(page.limit);
}

export async function deleteWatch(tx: Tx, id: string): Promise<Watch | undefined> {
  const rows = await tx.orm.delete(watches).where(eq(watches.id, id)).returning(COLUMNS);
  return rows[0];
}

/** Stops polling a target, unless an operation touches it. */
export async function deleteUntouched(tx: Tx, watch: Watch): Promise<void> {
  const touching = tx.orm.select({ id: operations.id }).from(operations).where(touches(watch));
  await tx.orm.delete(targets).where(and(eq(targets.name, watch.target), notExists(touching)));
}

function touches({ kind, addr, contractId, tokenId }: Watch): SQL | undefined {
  if (kind === 'wallet' && addr !== null) {
    const key = addr.toLowerCase();
    return or(
      eq(sql`lower(${operations.fromAddr})`, key),
      eq(sql`lower(${operations.toAddr})`, key),
    );
  }
  if (kind === 'token' && contractId !== null && tokenId !== null)
    return and(eq(operations.contractId, contractId), eq(operations.tokenId, tokenId));
  // Operations never add a contract as a target.
  return sql`false`;
}
