/**
 * SQL of watches: what people asked us to watch, and the objects that stand for it on the due list.
 * Always the watch first and its object after it, so that two people who watch and unwatch the same
 * object follow each other.
 */
import { and, asc, eq, gt, notExists, or, type SQL, sql } from 'drizzle-orm';
import type { Queryable, Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { operations } from '../../operations/tables.ts';
import { targets, watches } from '../tables.ts';

/** One watch. */
export interface Watch {
  id: string;
  kind: string;
  /** The name of the object, such as `wallet:<addr, lower case>`. */
  target: string;
  addr: string | null;
  contractId: bigint | null;
  tokenId: bigint | null;
  weight: number;
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
  weight: watches.weight,
  createdAt: watches.createdAt,
  createdBy: watches.createdBy,
};

/**
 * Inserts watches of different objects; one that is already watched keeps its row and takes the
 * weight. Answers the rows as they stand, in no order.
 */
export async function insertWatches(tx: Tx, rows: readonly Watch[]): Promise<Watch[]> {
  if (rows.length === 0) return [];
  const ordered = rows.toSorted((a, b) => (a.target < b.target ? -1 : 1));
  return tx.orm
    .insert(watches)
    .values(ordered)
    .onConflictDoUpdate({ target: watches.target, set: { weight: sql`excluded.weight` } })
    .returning(COLUMNS);
}

/** Watches in the order in which they were made, after that id. */
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

/** Removes a watch; answers it, or undefined when there was none. */
export async function deleteWatch(tx: Tx, id: string): Promise<Watch | undefined> {
  const rows = await tx.orm.delete(watches).where(eq(watches.id, id)).returning(COLUMNS);
  return rows[0];
}

/** Takes the weights of these objects from their watches. */
export async function weighObjects(tx: Tx, names: readonly string[]): Promise<void> {
  await tx.sql`
    update tallyhook.targets o set weight = w.weight from tallyhook.watches w
    where w.target = o.name and o.weight <> w.weight
      and o.name = any(${names as string[]}::text[])`;
}

/** Takes an object off the due list, unless an operation of ours touches it. */
export async function deleteUntouched(tx: Tx, watch: Watch): Promise<void> {
  const touching = tx.orm.select({ id: operations.id }).from(operations).where(touches(watch));
  await tx.orm.delete(targets).where(and(eq(targets.name, watch.target), notExists(touching)));
}

function touches({ kind, addr, contractId, tokenId }: Watch): SQL | undefined {
  if (kind === 'wallet' && addr !== null) {
    const key = addr.toLowerCase();
    return or(eq(operations.fromKey, key), eq(operations.toKey, key));
  }
  if (kind === 'token' && contractId !== null && tokenId !== null)
    return and(eq(operations.contractId, contractId), eq(operations.tokenId, tokenId));
  // No operation puts a contract on the due list.
  return sql`false`;
}
