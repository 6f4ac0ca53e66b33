/** SQL of the keys. */
import type { Orm } from '../db/connect.ts';
import { and, asc, eq, isNull } from '../db/drizzle.ts';
import type { Instant } from '../kernel/clock.ts';
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
  revokedAt: Instant | null;
}

const COLUMNS = {
  id: keys.id,
  name: keys.name,
  owner: keys.owner,
  scopes: keys.scopes,
  limits: keys.limits,
  createdAt: keys.createdAt,
  revokedAt: keys.revokedAt,
};
const LISTED_MAX = 1_000;

export async function findByHash(orm: Orm, hash: string): Promise<Key | undefined> {
  const rows = await orm.select(COLUMNS).from(keys).where(eq(keys.hash, hash)).limit(1);
  return rows[0];
}

/** Does nothing when the hash exists. */
export async function insertKey(
  orm: Orm,
  key: Omit<Key, 'revokedAt'> & { hash: string },
): Promise<void> {
  await orm.insert(keys).values(key).onConflictDoNothing({ target: keys.hash });
}

export async function listKeys(orm: Orm): Promise<Key[]> {
  return orm.select(COLUMNS).from(keys).orderBy(asc(keys.id)).limit(LISTED_MAX);
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
