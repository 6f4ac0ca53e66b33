/**
 * API keys: who may call, as whom, and for what. The secret itself is never stored, only its hash.
 */
import { text } from 'drizzle-orm/pg-core';
import { instant, json, tallyhook } from '../db/columns.ts';

export const keys = tallyhook.table('keys', {
  id: text().primaryKey(),
  /**
   * SHA-256 of the secret, hex. The secret has 256 random bits, so no salt or stretching is needed.
   */
  hash: text().notNull().unique(),
  name: text().notNull(),
  /** The person or team behind the key; idempotency keys and approvals belong to owners. */
  owner: text().notNull(),
  scopes: text().array().notNull(),
  limits: json(),
  createdAt: instant('created_at').notNull(),
  revokedAt: instant('revoked_at'),
});
