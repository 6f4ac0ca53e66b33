/** The table of API keys. Secrets are stored as hashes only. */
import { instant, json, tallyhook } from '../db/columns.ts';
import { text } from '../db/drizzle.ts';

export const keys = tallyhook.table('keys', {
  id: text().primaryKey(),
  /** SHA-256 of the secret, hex. A secret of 256 random bits needs no salt and no stretching. */
  hash: text().notNull().unique(),
  name: text().notNull(),
  /** The person or team that uses the key; idempotency keys and approvals belong to owners. */
  owner: text().notNull(),
  scopes: text().array().notNull(),
  limits: json(),
  createdAt: instant('created_at').notNull(),
  revokedAt: instant('revoked_at'),
});
