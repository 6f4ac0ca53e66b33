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
