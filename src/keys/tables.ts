/** API keys, whose secrets are stored as hashes only, and what callers changed with them. */
import { instant, json, tallyhook } from '../db/columns.ts';
import { bigint, text } from '../db/drizzle.ts';
import type { KeyLimits, Scope } from '../resources/admin/key.ts';

/** Owners of keys by their first spelling; no two of them are one by `tallyhook.owner_key`. */
export const owners = tallyhook.table('owners', { name: text().primaryKey() });

export const keys = tallyhook.table('keys', {
  id: text().primaryKey(),
  /** SHA-256 of the secret, hex. A secret of 256 random bits needs no salt and no stretching. */
  hash: text().notNull().unique(),
  name: text().notNull(),
  /** The person or team that uses the key; idempotency keys and approvals belong to owners. */
  owner: text()
    .notNull()
    .references(() => owners.name),
  scopes: text().array().$type<Scope[]>().notNull(),
  limits: json().$type<KeyLimits>(),
  createdAt: instant('created_at').notNull(),
  expiresAt: instant('expires_at'),
  revokedAt: instant('revoked_at'),
  /** To within a minute. */
  lastUsedAt: instant('last_used_at'),
});

/** Every request that changes something through the API. */
export const audit = tallyhook.table('audit', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  at: instant().notNull(),
  owner: text().notNull(),
  keyId: text('key_id').notNull(),
  /** Of whom a trusted proxy names, or else who was connected. */
  clientAddress: text('client_address'),
  /** Method and path of the route. */
  action: text().notNull(),
  /** What it names and asks for, without addresses, headers and secrets. */
  detail: json().notNull(),
  /** `done`, or the code of the refusal; null while it runs, and if the daemon was killed then. */
  result: text(),
});
