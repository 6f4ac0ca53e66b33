/**
 * The settings of a session, and whether connections keep one. Behind a pooler in transaction mode
 * such as PgBouncer, which the parameter `pool_mode=transaction` of a URL says, each transaction
 * may run in another session. So nothing is set or prepared in one: the rights, the planner and the
 * timeouts are those of the login.
 */

/**
 * The defaults of Postgres suit long reads of large tables on slow disks. Without statistics, which
 * a new database lacks, they choose scans of whole tables, parallel workers and compiled plans for
 * reads of a few rows, each slower by 10 to 100 ms.
 */
const PLANNER = {
  jit: 'off',
  random_page_cost: '1.1',
  max_parallel_workers_per_gather: '0',
};
/** As `current_setting` spells them. */
export const SESSION = {
  ...PLANNER,
  // Rows read after waiting for a lock must be those of the last commit.
  default_transaction_isolation: 'read committed',
  statement_timeout: '1min',
  idle_in_transaction_session_timeout: '1min',
} as const;

const PARAMETER = 'pool_mode';

/** Returns the URL without the parameter, which only Tallyhook knows. */
export function poolModeOf(url: string): { url: string; keepsSession: boolean } {
  const at = new URL(url);
  const mode = at.searchParams.get(PARAMETER);
  if (mode === null) return { url, keepsSession: true };
  at.searchParams.delete(PARAMETER);
  return { url: at.href, keepsSession: mode !== 'transaction' };
}

/** What the text must be; undefined if it is the URL of a database. */
export function expectedInstead(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol))
    return 'a URL such as postgres://user:password@host:5432/database';
  if ([null, 'session', 'transaction'].includes(url.searchParams.get(PARAMETER))) return undefined;
  return 'a URL with pool_mode=transaction, pool_mode=session, or no pool_mode';
}
