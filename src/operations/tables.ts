/**
 * Tables of operations. Transitions are append-only; `state` changes only in the statement that
 * inserts the transition.
 */

import { bytes, instant, json, jsonAsText, tallyhook, whole } from '../db/columns.ts';
import {
  bigint,
  boolean,
  foreignKey,
  index,
  integer,
  primaryKey,
  smallint,
  sql,
  text,
  unique,
  uniqueIndex,
} from '../db/drizzle.ts';

/**
 * The row of an operation. From its intent until it settles its state changes twice, and no index
 * contains what changes then, so that both are heap-only updates, which add nothing to any index:
 * what is found by its state is in `open_operations`, or by a generated column that is null on
 * that way.
 */
export const operations = tallyhook.table(
  'operations',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    /** `gateway` for a write through the gateway, `report` for a reported one. */
    source: text().notNull(),
    owner: text().notNull(),
    keyId: text('key_id').notNull(),
    idempotencyKey: text('idempotency_key'),
    /** Hash of method, path and canonical body; a repeat of the key with another is refused. */
    fingerprint: text().notNull(),
    reference: text(),

    method: text().notNull(),
    path: text().notNull(),
    contentType: text('content_type'),
    requestBody: bytes('request_body').notNull(),

    fromAddr: text('from_addr'),
    toAddr: text('to_addr'),
    operationNo: whole('operation_no'),
    contractId: whole('contract_id'),
    tokenId: whole('token_id'),
    amount: whole(),
    feeAmount: whole('fee_amount'),
    reasonType: text('reason_type'),
    tokenUri: text('token_uri'),
    metaData: text('meta_data'),
    extraData: text('extra_data'),
    /** The last observations of its wallets or token; see `storedImage`. */
    preImage: jsonAsText('pre_image'),
    recordedAt: instant('recorded_at').notNull(),
    /** When its caller stops waiting for the send; null for a caller that does not queue. */
    expiresAt: instant('expires_at'),
    /** See `ConflictScope`. */
    conflictKey: text('conflict_key'),
    /** The fee rule of its effects; null without a fee. */
    feeMode: text('fee_mode'),

    // Last what transitions change: an update logs a row from its first changed column.
    sentAt: instant('sent_at'),
    sendDeadlineAt: instant('send_deadline_at'),
    /** Of a write that was queued again: not sent before. */
    retryAt: instant('retry_at'),
    /** The daemon that sends it, while it is `sending`. */
    daemonId: text('daemon_id'),
    /** True when it was sent while a conflicting write was open. */
    ambiguous: boolean().notNull().default(false),
    /** False once the key may be used again (not_sent, unavailable). */
    keyHeld: boolean('key_held').notNull(),
    answerStatus: integer('answer_status'),
    answerHeaders: jsonAsText('answer_headers'),
    answerBody: bytes('answer_body'),
    txAppNo: whole('tx_app_no'),
    txLogNo: whole('tx_log_no'),
    txHash: text('tx_hash'),
    /** refused, not_sent, unavailable, or the class of an unknown outcome. */
    errorClass: text('error_class'),
    errorStatus: integer('error_status'),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    answeredAt: instant('answered_at'),
    /** When it took effect, as far as known; the effective time of its transaction. */
    effectiveAt: instant('effective_at'),
    effectiveBasis: text('effective_basis'),
    /** How the outcome is known without an answer of the service. */
    evidence: json(),
    settledAt: instant('settled_at'),
    /** The `subject_seq` of its newest event. */
    eventSeq: bigint('event_seq', { mode: 'bigint' }).notNull().default(sql`0`),
    state: text().notNull(),
    /** executed, not_executed or open. */
    outcome: text()
      .notNull()
      .generatedAlwaysAs(sql`case when state in ('accepted', 'executed', 'settled') then 'executed'
        when state in ('rejected', 'failed', 'not_executed', 'cancelled') then 'not_executed'
        else 'open' end`),
    /** Whether the ledger contains it once posting is done. */
    inLedger: boolean('in_ledger')
      .notNull()
      .generatedAlwaysAs(sql`case when kind in ('give', 'receive_from', 'transfer')
        then state in ('accepted', 'executed', 'settled')
        when kind in ('mint', 'mint_sequential', 'burn', 'transfer_from', 'set_extra_data')
        then state = 'settled' else false end`),
    /** The state of one that ended without being executed. */
    endedAs: text('ended_as').generatedAlwaysAs(
      sql`case when state in ('rejected', 'failed', 'not_executed', 'cancelled') then state end`,
    ),
    /** True of an executed one whose number or hash is not known, which a report may be about. */
    unnumbered: boolean().generatedAlwaysAs(
      sql`case when tx_log_no is null and tx_hash is null and kind <> 'other'
        and state in ('undecided', 'executed', 'settled') then true end`,
    ),
    /** What no two reported operations share: app and transaction number, or the hash. */
    reportedAs: text('reported_as').generatedAlwaysAs(
      sql`case when source = 'report'
        then coalesce(tx_app_no::text || ':' || tx_log_no::text, lower(tx_hash)) end`,
    ),
    /** When the fee rule counts for it; see `feeInstantOf` of effects/fee-rule.ts. */
    feeAt: instant('fee_at').generatedAlwaysAs(
      sql`case when fee_mode is not null then coalesce(sent_at, effective_at, recorded_at) end`,
    ),
    /** When one happened that moves no tokens of the service, which the ledger has. */
    happenedAt: instant('happened_at').generatedAlwaysAs(
      sql`case when kind not in ('give', 'receive_from', 'transfer')
        then coalesce(effective_at, sent_at, recorded_at) end`,
    ),
  },
  (t) => [
    uniqueIndex('operations_idempotency').on(t.idempotencyKey, t.owner).where(sql`key_held`),
    index('operations_by_released_key')
      .on(t.idempotencyKey)
      .where(sql`idempotency_key is not null and not key_held`),
    uniqueIndex('operations_reported').on(t.reportedAs).where(sql`reported_as is not null`),
    // Lists, newest first. Those of columns that most writes lack are partial.
    index('operations_by_time').on(t.recordedAt),
    index('operations_ended').on(t.endedAs, t.recordedAt).where(sql`ended_as is not null`),
    index('operations_by_kind').on(t.kind, t.recordedAt),
    index('operations_by_from')
      .on(sql`lower(from_addr)`, t.recordedAt)
      .where(sql`from_addr is not null`),
    index('operations_by_to').on(sql`lower(to_addr)`, t.recordedAt).where(sql`to_addr is not null`),
    index('operations_by_contract')
      .on(t.contractId, t.recordedAt)
      .where(sql`contract_id is not null`),
    index('operations_by_token')
      .on(t.contractId, t.tokenId, t.recordedAt)
      .where(sql`contract_id is not null`),
    index('operations_by_reference')
      .on(t.reference, t.recordedAt)
      .where(sql`reference is not null`),
    index('operations_unnumbered').on(t.recordedAt).where(sql`unnumbered`),
    index('operations_by_fee_mode').on(t.feeMode, t.feeAt).where(sql`fee_mode is not null`),
    index('operations_by_effect').on(t.happenedAt).where(sql`happened_at is not null`),
  ],
);

/**
 * The operations that have not ended: queued, sending, unknown, undecided, and executed ones that
 * have not settled. A row is written with the state of the operation. Found by state in the order
 * of the latest change, which is `answered_at`, `sent_at` or `recorded_at` of the operation.
 */
export const openOperations = tallyhook.table(
  'open_operations',
  {
    state: text().notNull(),
    changedAt: instant('changed_at').notNull(),
    id: text().notNull(),
    recordedAt: instant('recorded_at').notNull(),
    contractId: whole('contract_id'),
    /** See `ConflictScope`. */
    conflictKey: text('conflict_key'),
  },
  (t) => [
    primaryKey({ columns: [t.state, t.changedAt, t.id] }),
    index('open_operations_by_contract').on(t.contractId).where(sql`contract_id is not null`),
    index('open_operations_by_conflict').on(t.conflictKey).where(sql`conflict_key is not null`),
  ],
);

/**
 * Append-only: every change of state with its cause, and every send, recorded before it begins. One
 * that keeps the state adds a send, a number, or what the operation waits for. No foreign key,
 * which each row would pay.
 */
export const transitions = tallyhook.table(
  'transitions',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity(),
    operationId: text('operation_id').notNull(),
    fromState: text('from_state'),
    toState: text('to_state').notNull(),
    at: instant().notNull(),
    cause: text().notNull(),
    evidence: json(),
    /** Of a send: until when it may last, and the daemon that sends. */
    deadlineAt: instant('deadline_at'),
    daemonId: text('daemon_id'),
    /** The number or hash that became known with it. */
    txLogNo: whole('tx_log_no'),
    txHash: text('tx_hash'),
  },
  (t) => [
    // Without the id, equal keys share one entry.
    index('transitions_by_operation').on(t.operationId),
    index('transitions_by_tx').on(t.txLogNo).where(sql`tx_log_no is not null`),
    index('transitions_by_hash').on(sql`lower(tx_hash)`).where(sql`tx_hash is not null`),
    // For verification. Rows are stored in the order of their ids, so it is tiny.
    index('transitions_by_id').using('brin', t.id).with({ autosummarize: 'on' }),
  ],
);

/**
 * The effects of token writes, computed by effects.ts when the write is recorded. `phase`: `queued`
 * in the request queue, `open` while it is being sent or unknown, `undecided`, `executed` until an
 * observation confirms it, `settled`, `not_executed`, or `taken_back`: first executed, later found
 * not executed. A write that cannot be posted has no rows. See also `recordedEffectsOf`.
 */
export const operationEffects = tallyhook.table(
  'operation_effects',
  {
    operationId: text('operation_id').notNull(),
    line: smallint().notNull(),
    account: text().notNull(),
    amount: whole().notNull(),
    phase: text().notNull(),
    /** True while observations of the wallet have to account for it, null once it is settled. */
    unsettled: boolean().generatedAlwaysAs(sql`case when phase in ('queued', 'open',
      'undecided', 'executed', 'taken_back') then true when phase = 'not_executed' then false end`),
  },
  (t) => [
    primaryKey({ columns: [t.operationId, t.line] }),
    // What observations of a wallet have to account for, and what a drift may prove to have been
    // executed after all. Not by phase, so that an accepted write is a HOT update.
    index('operation_effects_by_account')
      .on(sql`lower(account)`, t.unsettled, t.amount)
      .where(sql`unsettled is not null`),
  ],
);

/** Amounts and fees of keys with a daily limit, by hour of the send; `infinity` when queued. */
export const keyUsage = tallyhook.table(
  'key_usage',
  {
    keyId: text('key_id').notNull(),
    hour: instant().notNull(),
    moved: whole().notNull(),
  },
  (t) => [primaryKey({ columns: [t.keyId, t.hour] })],
);

/** Times in which all writes are stopped; the current one has no `released_at`. */
export const freezes = tallyhook.table('freezes', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  frozenAt: instant('frozen_at').notNull(),
  frozenBy: text('frozen_by').notNull(),
  reason: text().notNull(),
  releasedAt: instant('released_at'),
  releasedBy: text('released_by'),
  releaseReason: text('release_reason'),
  /**
   * `ordered` by a person. `restored`: the database is a copy or comes from a backup. `failover`:
   * it may lack the last commits of its predecessor; that stops only what was queued before.
   */
  cause: text().notNull().default('ordered'),
  /** Whether writes queued before were sent after the release; else they became unknown. */
  sendQueued: boolean('send_queued'),
});

/** Keys and ids of operations that were used after the restored backup; not used again. */
export const usedSinceBackup = tallyhook.table('used_since_backup', {
  name: text().primaryKey(),
  recordedAt: instant('recorded_at').notNull(),
});

/** Append-only: proposals of people. One has an effect with as many approvals as it needs. */
export const decisions = tallyhook.table(
  'decisions',
  {
    /** The id of an operation, a drift or a period, or the account of an operator. */
    subject: text().notNull(),
    n: smallint().notNull(),
    /**
     * executed or not_executed; about a drift book, link (to the operation) or dismiss; about a
     * period close or reopen; of an operator the address of its wallet.
     */
    decision: text().notNull(),
    operationId: text('operation_id').references(() => operations.id),
    reason: text().notNull(),
    approvalsNeeded: smallint('approvals_needed').notNull(),
    proposedBy: text('proposed_by').notNull(),
    proposedKey: text('proposed_key').notNull(),
    proposedAt: instant('proposed_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.subject, t.n] }),
    unique('decisions_by_proposer').on(t.subject, t.n, t.proposedBy),
    unique('decisions_by_decision').on(t.subject, t.n, t.decision),
  ],
);

/** Append-only: approvals of decisions, by owners that did not propose them. */
export const approvals = tallyhook.table(
  'approvals',
  {
    subject: text().notNull(),
    n: smallint().notNull(),
    proposedBy: text('proposed_by').notNull(),
    owner: text().notNull(),
    keyId: text('key_id').notNull(),
    at: instant().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.subject, t.n, t.owner] }),
    foreignKey({
      name: 'approvals_of_decisions',
      columns: [t.subject, t.n, t.proposedBy],
      foreignColumns: [decisions.subject, decisions.n, decisions.proposedBy],
    }),
  ],
);

/**
 * Operations whose posting or reversal is due: written in the transaction that changes the
 * operation's state, removed in the one that posts it. A row with a reason is quarantined.
 */
export const duePostings = tallyhook.table(
  'due_postings',
  {
    operationId: text('operation_id').primaryKey(),
    dueAt: instant('due_at').notNull(),
    quarantineReason: text('quarantine_reason'),
    /** Kept when a person releases it, until it is posted. */
    quarantinedAt: instant('quarantined_at'),
  },
  (t) => [
    index('due_postings_in_order').on(t.dueAt, t.operationId).where(sql`quarantine_reason is null`),
    index('due_postings_quarantined').on(t.quarantinedAt).where(sql`quarantined_at is not null`),
  ],
);
