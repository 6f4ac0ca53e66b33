/**
 * What adds rows to each table, and what ends its growth. A table without a line fails
 * ../schema.test.ts, a line that is not true ../ends.test.ts.
 *
 * - `kept`: for ever, because it is the ledger or evidence; the daemon has no right to delete.
 * - `month`: the partitions of a month are dropped after their retention.
 * - `deleted`: the daemon deletes rows.
 * - `bounded`: a row per name in the code.
 */
interface Line {
  grows: string;
  end: 'kept' | 'month' | 'deleted' | 'bounded';
  /** What deletes them. */
  by?: string;
  /** Where the daemon moves rows, for which it may delete them. */
  moves?: string;
  /** Rows are updated many times: autovacuum must not wait for a fifth of the table. */
  churns?: true;
}

export const ENDS: Record<string, Line> = {
  accounts: { grows: 'a wallet or operator', end: 'kept', churns: true },
  alerts: { grows: 'a condition that an alert is about', end: 'deleted', by: 'the end of it' },
  applied_migrations: { grows: 'a migration', end: 'bounded' },
  approvals: { grows: 'an approval of a proposal', end: 'kept' },
  attempt_figures: {
    grows: 'an endpoint, minute and event type with attempts',
    end: 'deleted',
    by: 'housekeeping, 31 days',
  },
  attempt_minutes: {
    grows: 'an endpoint and minute with attempts, by a daemon of release 0.2.0',
    end: 'deleted',
    by: 'housekeeping of that daemon; a later release drops the table',
  },
  attempts: { grows: 'an attempt of a delivery', end: 'month' },
  audit: {
    grows: 'a change through the API',
    end: 'deleted',
    by: 'retention_days.audit, through a function of the owner',
  },
  batches: { grows: 'a batch of postings or evidence', end: 'kept' },
  candidates: {
    grows: 'a first finding about an unknown operation',
    end: 'deleted',
    by: 'the second finding, or housekeeping when an answer or a person came first',
  },
  chain: { grows: 'a batch', end: 'kept' },
  chained_rows: { grows: 'a batch and source of evidence', end: 'kept' },
  clock: { grows: 'one row', end: 'bounded' },
  consumed_events: {
    grows: 'an event that a consumer read, up to 1,000 each',
    end: 'deleted',
    by: 'its acknowledgement, a seek, or the end of the consumer',
    churns: true,
  },
  consumers: {
    grows: 'a consumer, up to 100 of an owner',
    end: 'deleted',
    by: 'the person who ends it',
  },
  daemons: { grows: 'a start', end: 'deleted', by: 'housekeeping, a month after its end' },
  day_balances: { grows: 'an account that changed in a day', end: 'kept' },
  day_ends: { grows: 'a day with postings', end: 'kept' },
  decisions: { grows: 'a proposal', end: 'kept' },
  deliveries: {
    grows: 'a delivery that ended',
    end: 'month',
    moves: 'to pending_deliveries, when it is sent again',
  },
  drift_actions: { grows: 'a step of a drift', end: 'kept' },
  drifts: { grows: 'a difference that nothing explains', end: 'kept' },
  due_postings: { grows: 'an executed operation', end: 'deleted', by: 'its posting' },
  endpoint_health: { grows: 'an endpoint', end: 'deleted', by: 'the end of its endpoint' },
  endpoints: {
    grows: 'an endpoint',
    end: 'deleted',
    by: 'housekeeping, when the deliveries of a deleted one are past their retention',
  },
  entries: { grows: 'two or more a transaction', end: 'kept' },
  event_shapes: { grows: 'the names of the members of events of a type', end: 'bounded' },
  events: { grows: 'a change', end: 'month' },
  fee_rules: { grows: 'a change of the setting ledger.fee_mode', end: 'kept' },
  feed: { grows: 'the feed and each reader of ours', end: 'bounded' },
  freezes: { grows: 'a freeze', end: 'kept' },
  import_movements: {
    grows: 'an account that a new row of an import moves',
    end: 'deleted',
    by: 'housekeeping, a month after the import was done, or a day after it was cancelled',
  },
  import_rows: {
    grows: 'a row of a file',
    end: 'deleted',
    by: 'housekeeping, a month after the import was done, or a day after it was cancelled',
    churns: true,
  },
  imports: {
    grows: 'a file that was imported, which is kept',
    end: 'deleted',
    by: 'the upload, when its file does not arrive or another import goes on',
    churns: true,
  },
  installation: { grows: 'a stored setting', end: 'bounded' },
  key_usage: { grows: 'a key and hour with a limit', end: 'deleted', by: 'housekeeping, 2 days' },
  keys: { grows: 'a key; operations and the audit name it', end: 'kept' },
  leases: { grows: 'a kind of leader', end: 'bounded' },
  migrations: { grows: 'a migration that release 0.2.0 knows or refuses', end: 'bounded' },
  nft_movements: { grows: 'a movement of a token', end: 'kept' },
  numbered_events: { grows: 'a commit with events', end: 'month' },
  observations: { grows: 'a changed target', end: 'month', churns: true },
  observed_holders: {
    grows: 'a change of the holder of a token',
    end: 'deleted',
    by: 'the ledger, when its journal shows it',
  },
  open_operations: {
    grows: 'a write',
    end: 'deleted',
    by: 'its end; of one that nothing ends, a decision of people',
    churns: true,
  },
  operation_effects: { grows: 'an account of an operation', end: 'kept', churns: true },
  operator_wallets: { grows: 'a proposal of people', end: 'kept' },
  operations: { grows: 'a write; a queued one is one too', end: 'kept', churns: true },
  owners: { grows: 'an owner of keys', end: 'kept' },
  pending_deliveries: {
    grows: 'an event for an endpoint',
    end: 'deleted',
    by: 'the end of the delivery, after retention at the latest',
    churns: true,
  },
  period_actions: { grows: 'a close, sign-off, signature or reopening', end: 'kept' },
  periods: { grows: 'a close of a period', end: 'kept' },
  poll_minutes: { grows: 'a minute', end: 'deleted', by: 'housekeeping, 31 days' },
  posting_requests: { grows: 'an opening or a booking', end: 'kept' },
  quarantine_releases: { grows: 'a release by a person', end: 'kept' },
  quota: { grows: 'a class of traffic', end: 'bounded' },
  report_files: { grows: 'a format of a report for the folder', end: 'kept' },
  replays: { grows: 'a request to send again', end: 'deleted', by: 'housekeeping, as deliveries' },
  reports: { grows: 'a period, and what people ask for', end: 'kept' },
  service_changes: {
    grows: 'a change of state of the service',
    end: 'deleted',
    by: 'the next change, after a year',
  },
  service_state: { grows: 'one row', end: 'bounded' },
  subjects: {
    grows: 'an operation, wallet, token or endpoint with events',
    end: 'deleted',
    by: 'the last event of an operation that can no longer change; the end of an endpoint',
    churns: true,
  },
  targets: {
    grows: 'a wallet, token, contract or scan that is polled',
    end: 'deleted',
    by: 'the end of its scan or watch, or housekeeping when it does not exist and nothing needs it',
    churns: true,
  },
  tokens: { grows: 'a token', end: 'kept', churns: true },
  transactions: { grows: 'an executed operation', end: 'kept' },
  transitions: { grows: 'a change of state', end: 'kept' },
  unchained_rows: {
    grows: 'a statement that inserts evidence',
    end: 'deleted',
    by: 'the next batch, through a function of the owner',
  },
  unnumbered_events: { grows: 'a commit with events', end: 'deleted', by: 'the sequencer' },
  unprocessed_observations: {
    grows: 'a target with a new observation',
    end: 'deleted',
    by: 'the reconciler',
  },
  used_since_backup: { grows: 'a key that a person names after a restore', end: 'kept' },
  waits: {
    grows: 'a kind of operation on a contract that settles',
    end: 'deleted',
    by: 'what settled since, beyond 500 rows',
  },
  wallets: { grows: 'a wallet', end: 'kept', churns: true },
  watches: { grows: 'a watch', end: 'deleted', by: 'the person who ends it' },
};
