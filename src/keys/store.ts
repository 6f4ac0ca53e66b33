/** SQL of the keys. */
import type { Db, Orm } from '../db/connect.ts';
import { and, asc, eq, gt, isNull } from '../db/drizzle.ts';
import type { Instant } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import { keys } from './tables.ts';

export interface Key {
  id: string;
  name: string;
  owner: string;
  scopes: string[];
  /** Null: no limits. */
  limits: Json;
  createdAt: Instant;
  /** Null: never. */
  expiresAt: Instant | null;
  revokedAt: Instant | null;
  lastUsedAt: Instant | null;
}

const COLUMNS = {
  id: keys.id,
  name: keys.name,
  owner: keys.owner,
  scopes: keys.scopes,
  limits: keys.limits,
  createdAt: keys.createdAt,
  expiresAt: keys.expiresAt,
  revokedAt: keys.revokedAt,
  lastUsedAt: keys.lastUsedAt,
};

export async function findByHash(orm: Orm, hash: string): Promise<Key | undefined> {
  const rows = await orm.select(COLUMNS).from(keys).where(eq(keys.hash, hash)).limit(1);
  return rows[0];
}

/** The first spelling of an owner, which this one is if there was none. */
export async function spellingOf({ sql }: Pick<Db, 'sql'>, owner: string): Promise<string> {
  await sql`insert into tallyhook.owners (name) values (${owner}) on conflict do nothing`;
  const rows = await sql<{ name: string }[]>`
    select name from tallyhook.owners
    where tallyhook.owner_key(name) = tallyhook.owner_key(${owner})`;
  return must(rows[0], 'owner').name;
}

/** Does nothing when the hash exists. */
export async function insertKey(
  orm: Orm,
  key: Omit<Key, 'revokedAt' | 'lastUsedAt'> & { hash: string },
): Promise<void> {
  await orm.insert(keys).values(key).onConflictDoNothing({ target: keys.hash });
}

/** Oldest first. */
export async function listKeys(
  orm: Orm,
  { after, limit }: { after: string; limit: number },
): Promise<Key[]> {
  return orm
    .select(COLUMNS)
    .from(keys)
    .where(gt(keys.id, after))
    .orderBy(asc(keys.id))
    .limit(limit);
}

export async function markUsed(orm: Orm, id: string, now: Instant): Promise<void> {
  await orm.update(keys).set({ lastUsedAt: now }).where(eq(keys.id, id));
}

/** False when no such key exists. A key that is revoked already keeps its time. */
export async function revokeKey(orm: Orm, id: string, now: Instant): Promise<boolean> {
  await orm
    .update(keys)
    .set({ revokedAt: now })
    .where(and(eq(keys.id, id), isNull(keys.revokedAt)));
  const rows = await orm.select({ id: keys.id }).from(keys).where(eq(keys.id, id)).limit(1);
  return rows.length === 1;
}
