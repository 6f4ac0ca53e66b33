/**
 * Checks at every start that Postgres keeps what it confirms and that the guarding triggers exist
 * and are enabled. A trigger that is not in this list is not checked.
 */
import { Failure } from '../../kernel/errors.ts';
import type { Queryable } from '../connect.ts';

const APPEND_ONLY = [
  'batches',
  'transactions',
  'entries',
  'nft_movements',
  'chain',
  'transitions',
  'drift_actions',
  'quarantine_releases',
  'decisions',
  'approvals',
  'periods',
  'period_actions',
  'chained_rows',
  'day_ends',
  'day_balances',
];
/** Their rows are evidence, which the hash chain covers. */
const EVIDENCE = [
  'transitions',
  'drifts',
  'drift_actions',
  'decisions',
  'approvals',
  'quarantine_releases',
  'periods',
  'period_actions',
];
const KEPT = [
  'operations',
  'accounts',
  'drifts',
  'reports',
  'posting_requests',
  'freezes',
  'used_since_backup',
];

/** `table.trigger` of each guarding trigger. */
export const GUARDS: readonly string[] = [
  ...APPEND_ONLY.map((table) => `${table}.${table}_append_only`),
  ...KEPT.map((table) => `${table}.${table}_kept`),
  ...EVIDENCE.map((table) => `${table}.${table}_to_chain`),
  'entries.entries_balance',
  'transactions.transactions_have_entries',
  'batches.batches_continue',
  'batches.batches_chained',
  'nft_movements.nft_movements_in_batch',
  'accounts.accounts_opened_true',
  'accounts.accounts_updated_true',
  'accounts.accounts_identity',
  'posting_requests.posting_requests_identity',
  'drifts.drifts_in_order',
  'drifts.drifts_identity',
  'periods.periods_consecutive',
  'period_actions.period_actions_in_order',
];

/** Guards that are missing or not `enable always`. */
export async function findMissingGuards(db: Queryable): Promise<string[]> {
  const rows = await db.sql<{ name: string }[]>`
    select c.relname || '.' || t.tgname as name
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'tallyhook' and not t.tgisinternal and t.tgenabled = 'A'`;
  const enabled = new Set(rows.map((row) => row.name));
  return GUARDS.filter((guard) => !enabled.has(guard));
}

/** @throws Failure `bad_setting` that names the setting or the guard */
export async function checkGuards(db: Queryable): Promise<void> {
  const settings = await db.sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings
    where name in ('fsync', 'synchronous_commit', 'full_page_writes')`;
  for (const { name, setting } of settings) {
    if (setting === 'off') {
      throw new Failure(
        'bad_setting',
        `Postgres runs with ${name} off and may lose commits; set ${name} = on`,
      );
    }
  }
  const missing = await findMissingGuards(db);
  if (missing.length > 0) {
    throw new Failure(
      'bad_setting',
      'triggers that guard the database are missing or disabled; restore them: ' +
        missing.join(', '),
    );
  }
}
