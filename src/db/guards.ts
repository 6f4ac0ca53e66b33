/**
 * What a start insists on: a server that keeps what it confirms, and guards that stand and are
 * switched on. The list is the promise; a guard that is missing here protects nothing.
 */
import { Failure } from '../kernel/errors.ts';
import type { Queryable } from './connect.ts';

const APPEND_ONLY = [
  'batches',
  'transactions',
  'entries',
  'nft_movements',
  'transitions',
  'sends',
  'drift_actions',
];
const KEPT = [
  'operations',
  'accounts',
  'drifts',
  'reports',
  'posting_requests',
  'freezes',
  'decisions',
];

/** Every guarding trigger as `table.trigger`. */
export const GUARDS: readonly string[] = [
  ...APPEND_ONLY.map((table) => `${table}.${table}_append_only`),
  ...KEPT.map((table) => `${table}.${table}_kept`),
  'entries.entries_balance',
  'transactions.transactions_have_entries',
  'batches.batches_continue',
  'accounts.accounts_opened_true',
  'accounts.accounts_updated_true',
  'accounts.accounts_identity',
  'posting_requests.wanted_postings_identity',
];

/** Guards that are missing or not enabled always; empty when all stand. */
export async function findMissingGuards(db: Queryable): Promise<string[]> {
  const rows = await db.sql<{ name: string }[]>`
    select c.relname || '.' || t.tgname as name
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'tallyhook' and not t.tgisinternal and t.tgenabled = 'A'`;
  const standing = new Set(rows.map((row) => row.name));
  return GUARDS.filter((guard) => !standing.has(guard));
}

/**
 * Refuses a database that would not keep our promises.
 * @throws Failure `bad_setting` naming the setting or the guard
 */
export async function checkGuards(db: Queryable): Promise<void> {
  const settings = await db.sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings
    where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version_num')`;
  for (const { name, setting } of settings) {
    if (name === 'server_version_num') {
      if (Number(setting) < 150000) {
        throw new Failure('bad_setting', `Postgres 15 or newer is needed, this is ${setting}`);
      }
    } else if (setting === 'off') {
      throw new Failure(
        'bad_setting',
        `Postgres runs with ${name} off and may lose what it confirmed; set ${name} = on`,
      );
    }
  }
  const missing = await findMissingGuards(db);
  if (missing.length > 0) {
    throw new Failure(
      'bad_setting',
      `guards of the database are missing or disabled, restore them: ${missing.join(', ')}`,
    );
  }
}
