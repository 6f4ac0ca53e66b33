/** Tables of imports. The rows of one that has ended are removed later; it stays. */
import { instant, json, tallyhook, whole } from '../db/columns.ts';
import { index, integer, primaryKey, sql, text, uniqueIndex } from '../db/drizzle.ts';

export const imports = tallyhook.table(
  'imports',
  {
    id: text().primaryKey(),
    owner: text().notNull(),
    keyId: text('key_id').notNull(),
    fileName: text('file_name').notNull(),
    options: json().notNull(),
    createdAt: instant('created_at').notNull(),
    /** See `ImportState`. */
    state: text().notNull(),
    /** Of the file; empty until it has arrived. */
    sha256: text().notNull().default(''),
    /** Of owner, file and options; at most one import with it has not ended. */
    fingerprint: text().notNull().default(''),
    bytes: integer().notNull().default(0),
    ignoredColumns: text('ignored_columns').array().notNull().default([]),
    lines: integer().notNull().default(0),
    skipped: integer().notNull().default(0),
    checked: integer().notNull().default(0),
    toRecord: integer('to_record').notNull().default(0),
    recorded: integer().notNull().default(0),
    known: integer().notNull().default(0),
    refused: integer().notNull().default(0),
    /** The rows up to it are done in this state. */
    place: integer().notNull().default(0),
    /** The last account whose proof is in the summary. */
    provedAccount: text('proved_account').notNull().default(''),
    summary: json(),
    checkedAt: instant('checked_at'),
    /** In this order those that are to be recorded are checked once more and recorded. */
    turn: integer(),
    reason: text(),
    finishedAt: instant('finished_at'),
    /** Until then one daemon works on it. */
    leaseUntil: instant('lease_until'),
  },
  (t) => [
    uniqueIndex('imports_going')
      .on(t.fingerprint)
      .where(sql`state in ('checking', 'recording', 'ready', 'refused')`),
    index('imports_working').on(t.createdAt).where(sql`state in ('checking', 'recording')`),
  ],
);

export const importRows = tallyhook.table(
  'import_rows',
  {
    importId: text('import_id').notNull(),
    n: integer().notNull(),
    line: integer().notNull(),
    /** The report in canonical JSON; null for a row that cannot be read. */
    report: text(),
    /** Null until it is checked. See `RowResult`. */
    result: text(),
    problem: json(),
    /** The key of the transaction, which later rows may repeat. */
    identity: text(),
    /** The operation that the report names. */
    named: text(),
    operationId: text('operation_id'),
    kind: text(),
    occurredAt: instant('occurred_at'),
  },
  (t) => [
    primaryKey({ columns: [t.importId, t.n] }),
    index('import_rows_result').on(t.result, t.importId, t.n),
    index('import_rows_identity').on(t.identity).where(sql`identity is not null`),
    index('import_rows_named').on(t.named).where(sql`named is not null`),
  ],
);

/** What recording the new rows changes: by how much each account. */
export const importMovements = tallyhook.table(
  'import_movements',
  {
    importId: text('import_id').notNull(),
    n: integer().notNull(),
    line: integer().notNull(),
    /** In the form in which accounts are compared. */
    account: text().notNull(),
    at: instant().notNull(),
    amount: whole().notNull(),
  },
  (t) => [index('import_movements_account').on(t.importId, t.account, t.at)],
);
