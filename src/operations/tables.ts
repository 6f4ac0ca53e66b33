/**
 * Tables of operations. Transitions and sends are append-only; `state` changes only in the
 * statement that inserts the transition.
 */

import { bytes, instant, json, tallyhook, whole } from '../db/columns.ts';
import {
  bigint,
  boolean,
  index,
  integer,
  primaryKey,
  smallint,
  sql,
  text,
  uniqueIndex,
} from '../db/drizzle.ts';

export const operations = tallyhook.table(
  'operations',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    state: text().notNull(),
    /** executed, not_executed or open. */
    outcome: text()
      .notNull()
      .generatedAlwaysAs(sql`case when state in ('accepted', 'executed', 'settled') then 'executed'
        when state in ('rejected', 'failed', 'not_executed', 'cancelled') then 'not_executed'
        else 'open' end`),
    /** `gateway` for a write through the gateway, `report` for a reported one. */
    source: text().notNull(),
    owner: text().notNull(),
    keyId: text('key_id').notNull(),
    idempotencyKey: text('idempotency_key'),
    /** SHA-256 of method, path and canonical body; a repeat of the key with another is refused. */
    fingerprint: text().notNull(),
    /** False once the key may be used again (not_sent, unavailable). */
    keyHeld: boolean('key_held').notNull(),
    reference: text(),

    method: text().notNull(),
    path: text().notNull(),
    contentType: text('content_type'),
    requestBody: bytes('request_body').notNull(),

    fromAddr: text('from_addr'),
    toAddr: text('to_addr'),
    fromKey: text('from_key').generatedAlwaysAs(sql`lower(from_addr)`),
    toKey: text('to_key').generatedAlwaysAs(sql`lower(to_addr)`),
    operationNo: whole('operation_no'),
    contractId: whole('contract_id'),
    tokenId: whole('token_id'),
    amount: whole(),
    feeAmount: whole('fee_amount'),
    reasonType: text('reason_type'),
    tokenUri: text('token_uri'),
    metaData: text('meta_data'),
    extraData: text('extra_data'),
    /** The last observations of the wallets or the token when the intent was recorded. */
    preImage: json('pre_image'),

    txAppNo: whole('tx_app_no'),
    txLogNo: whole('tx_log_no'),
    txHash: text('tx_hash'),
    /** refused, not_sent, unavailable, or the class of an unknown outcome. */
    errorClass: text('error_class'),
    errorStatus: integer('error_status'),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    answerStatus: integer('answer_status'),
    answerHeaders: json('answer_headers'),
    answerBody: bytes('answer_body'),
    /** How the outcome is known without an answer of the service. */
    evidence: json(),

    recordedAt: instant('recorded_at').notNull(),
    sentAt: instant('sent_at'),
    sendDeadlineAt: instant('send_deadline_at'),
    daemonId: text('daemon_id'),
    answeredAt: instant('answered_at'),
    /** When it took effect, as far as known; the effective time of its transaction. */
    effectiveAt: instant('effective_at'),
    effectiveBasis: text('effective_basis'),
    settledAt: instant('settled_at'),
    /** When its caller stops waiting for the send; null for a caller that does not queue. */
    expiresAt: instant('expires_at'),
    /** See `ConflictScope`. */
    conflictKey: text('conflict_key'),
    /** True when it was sent while a conflicting write was open. */
    ambiguous: boolean().notNull().default(false),
    /** Whether the ledger contains it once posting is done. */
    inLedger: boolean('in_ledger')
      .notNull()
      .generatedAlwaysAs(sql`case when kind in ('give', 'receive_from', 'transfer')
        then state in ('accepted', 'executed', 'settled')
        when kind in ('mint', 'mint_sequential', 'burn', 'transfer_from', 'set_extra_data')
        then state = 'settled' else false end`),
  },
  (t) => [
    uniqueIndex('operations_idempotency').on(t.owner, t.idempotencyKey).where(sql`key_held`),
    uniqueIndex('operations_reported_tx')
      .on(t.txAppNo, t.txLogNo)
      .where(sql`source = 'report' and tx_log_no is not null`),
    uniqueIndex('operations_reported_hash')
      .on(t.txHash)
      .where(sql`source = 'report' and tx_hash is not null`),
    // Partial indexes, because a write has few of these columns.
    index('operations_by_from').on(t.fromKey, t.recordedAt).where(sql`from_key is not null`),
    index('operations_by_to').on(t.toKey, t.recordedAt).where(sql`to_key is not null`),
    index('operations_by_operator')
      .on(t.operationNo, t.recordedAt)
      .where(sql`operation_no is not null`),
    index('operations_by_token').on(t.contractId, t.tokenId).where(sql`contract_id is not null`),
    index('operations_by_tx').on(t.txLogNo).where(sql`tx_log_no is not null`),
    index('operations_by_hash').on(t.txHash).where(sql`tx_hash is not null`),
    index('operations_by_reference').on(t.reference).where(sql`reference is not null`),
    // Open writes on a token; those on a wallet are found by their effects.
    index('operations_open_token')
      .on(t.contractId, t.tokenId, t.toKey)
      .where(sql`contract_id is not null
        and state in ('recorded', 'queued', 'sending', 'unknown')`),
    index('operations_open_conflict')
      .on(t.conflictKey)
      .where(sql`conflict_key is not null and state in ('sending', 'unknown')`),
    // Operations without a number, which a report may be about.
    index('operations_unnumbered')
      .on(t.recordedAt)
      .where(sql`tx_log_no is null and tx_hash is null and kind <> 'other'
        and state in ('undecided', 'executed', 'settled')`),
    index('operations_queue').on(t.recordedAt, t.id).where(sql`state = 'queued'`),
    index('operations_open')
      .on(t.state, t.recordedAt)
      .where(sql`settled_at is null and state in
      ('recorded', 'sending', 'queued', 'accepted', 'unknown', 'executed')`),
    // By their latest change: those that the observer has not scheduled polls for.
    index('operations_news')
      .on(sql`(coalesce(answered_at, sent_at, recorded_at))`)
      .where(sql`settled_at is null and state in
      ('recorded', 'sending', 'queued', 'accepted', 'unknown', 'executed')`),
  ],
);

/**
 * Append-only: every change of state, with its cause. Like `sends` without a foreign key, whose
 * trigger would run for every row: rows are inserted by the statement that inserts or changes their
 * operation, and operations are never deleted.
 */
export const transitions = tallyhook.table(
  'transitions',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    operationId: text('operation_id').notNull(),
    fromState: text('from_state'),
    toState: text('to_state').notNull(),
    at: instant().notNull(),
    cause: text().notNull(),
    evidence: json(),
    daemonId: text('daemon_id'),
  },
  (t) => [index('transitions_by_operation').on(t.operationId, t.id)],
);

/**
 * The effects of token writes, computed by effects.ts when the write is recorded. `phase`: `queued`
 * while the write waits in the request queue, `open`, `executed` until an observation confirms it,
 * `settled`, `not_executed`, or `taken_back`: executed before and not executed as is known now. A
 * write that cannot be posted has no rows.
 */
export const operationEffects = tallyhook.table(
  'operation_effects',
  {
    operationId: text('operation_id').notNull(),
    line: smallint().notNull(),
    account: text().notNull(),
    accountKey: text('account_key').notNull().generatedAlwaysAs(sql`lower(account)`),
    amount: whole().notNull(),
    phase: text().notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.operationId, t.line] }),
    // What observations of a wallet have to account for; it shrinks when operations settle.
    index('operation_effects_unsettled')
      .on(t.accountKey, t.phase)
      .where(sql`phase in ('queued', 'open', 'executed', 'taken_back')`),
    // What a drift may prove to have been executed after all.
    index('operation_effects_not_executed')
      .on(t.accountKey, t.amount)
      .where(sql`phase = 'not_executed'`),
  ],
);

/**
 * Amounts and fees of each key with a daily limit, by the hour in which the write was sent. Writes
 * in the request queue count under `infinity`.
 */
export const keyUsage = tallyhook.table(
  'key_usage',
  {
    keyId: text('key_id').notNull(),
    hour: instant().notNull(),
    moved: whole().notNull(),
  },
  (t) => [primaryKey({ columns: [t.keyId, t.hour] })],
);

/** Append-only: every send, recorded before it begins. */
export const sends = tallyhook.table(
  'sends',
  {
    operationId: text('operation_id').notNull(),
    n: integer().notNull(),
    startedAt: instant('started_at').notNull(),
    deadlineAt: instant('deadline_at').notNull(),
    daemonId: text('daemon_id').notNull(),
    epoch: bigint({ mode: 'bigint' }).notNull(),
    /** Why an earlier send allows this one; null for the first. */
    after: text(),
  },
  (t) => [primaryKey({ columns: [t.operationId, t.n] })],
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
});

/** Outcomes that one person proposes and a person of another owner approves. */
export const decisions = tallyhook.table(
  'decisions',
  {
    operationId: text('operation_id')
      .notNull()
      .references(() => operations.id),
    n: smallint().notNull(),
    outcome: text().notNull(),
    reason: text().notNull(),
    proposedBy: text('proposed_by').notNull(),
    proposedKey: text('proposed_key').notNull(),
    proposedAt: instant('proposed_at').notNull(),
    approvedBy: text('approved_by'),
    approvedKey: text('approved_key'),
    approvedAt: instant('approved_at'),
  },
  (t) => [primaryKey({ columns: [t.operationId, t.n] })],
);
