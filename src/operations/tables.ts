/**
 * What we asked of the service. An operation is one write; its transitions and sends are rows that
 * are never changed. `state` changes only in the statement that inserts the transition.
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

/** Column order: identity, request, parties, answer, life. */
export const operations = tallyhook.table(
  'operations',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    state: text().notNull(),
    /** executed, not_executed or open: what the state means for the books (design, section 4). */
    outcome: text()
      .notNull()
      .generatedAlwaysAs(sql`case when state in ('accepted', 'executed', 'settled') then 'executed'
        when state in ('rejected', 'failed', 'not_executed', 'cancelled') then 'not_executed'
        else 'open' end`),
    /** `gateway` for a write that went through us, `report` for one made elsewhere. */
    source: text().notNull(),
    owner: text().notNull(),
    keyId: text('key_id').notNull(),
    idempotencyKey: text('idempotency_key'),
    /** SHA-256 of method, path and canonical body: the same key with another one is refused. */
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
    /** What was last seen of the wallets or the token involved, when the intent was recorded. */
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
    /** How the outcome is known, when it was not the service's own answer. */
    evidence: json(),

    recordedAt: instant('recorded_at').notNull(),
    sentAt: instant('sent_at'),
    sendDeadlineAt: instant('send_deadline_at'),
    daemonId: text('daemon_id'),
    answeredAt: instant('answered_at'),
    /** When the outcome took effect as far as known; what the ledger posts under. */
    effectiveAt: instant('effective_at'),
    effectiveBasis: text('effective_basis'),
    settledAt: instant('settled_at'),
    /** Until when its caller is willing to wait for it to be sent; null: not beyond the answer. */
    expiresAt: instant('expires_at'),
    /** The token, or the equal mints, that the write acts on, with its kind (conflicts.ts). */
    conflictKey: text('conflict_key'),
    /** True when it was sent beside a conflicting write. */
    ambiguous: boolean().notNull().default(false),
    /**
     * Whether the ledger has to hold it: a token write once executed,
     * an NFT write once settled.
     */
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
    // Rows without the column have no business in its index: a write names few of them.
    index('operations_by_from').on(t.fromKey, t.recordedAt).where(sql`from_key is not null`),
    index('operations_by_to').on(t.toKey, t.recordedAt).where(sql`to_key is not null`),
    index('operations_by_operator')
      .on(t.operationNo, t.recordedAt)
      .where(sql`operation_no is not null`),
    index('operations_by_token').on(t.contractId, t.tokenId).where(sql`contract_id is not null`),
    index('operations_by_tx').on(t.txLogNo).where(sql`tx_log_no is not null`),
    index('operations_by_hash').on(t.txHash).where(sql`tx_hash is not null`),
    index('operations_by_reference').on(t.reference).where(sql`reference is not null`),
    // Open writes of a token; those of a wallet are found by their effects.
    index('operations_open_token')
      .on(t.contractId, t.tokenId, t.toKey)
      .where(sql`contract_id is not null
        and state in ('recorded', 'queued', 'sending', 'unknown')`),
    index('operations_open_conflict')
      .on(t.conflictKey)
      .where(sql`conflict_key is not null and state in ('sending', 'unknown')`),
    // What a report from elsewhere may be about, beside open writes: those without a number.
    index('operations_unnumbered')
      .on(t.recordedAt)
      .where(sql`tx_log_no is null and tx_hash is null and kind <> 'other'
        and state in ('undecided', 'executed', 'settled')`),
    index('operations_queue').on(t.recordedAt, t.id).where(sql`state = 'queued'`),
    index('operations_open')
      .on(t.state, t.recordedAt)
      .where(sql`settled_at is null and state in
      ('recorded', 'sending', 'queued', 'accepted', 'unknown', 'executed')`),
    // The same by their newest news: what the observer has not taken up yet.
    index('operations_news')
      .on(sql`(coalesce(answered_at, sent_at, recorded_at))`)
      .where(sql`settled_at is null and state in
      ('recorded', 'sending', 'queued', 'accepted', 'unknown', 'executed')`),
  ],
);

/**
 * Append-only: every change of state, with its cause. Without a foreign key, which would cost every
 * row a trigger: rows are made only by the statement that makes or moves their operation, and
 * operations are never deleted. The same holds for sends.
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
 * What each token write does to accounts, made by effects.ts when the write is recorded. `phase` is
 * `queued` while the write waits in the request queue, else the operation's outcome. A write that
 * cannot be posted has no rows.
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
    index('operation_effects_open')
      .on(t.accountKey, t.phase)
      .where(sql`phase in ('queued', 'open')`),
  ],
);

/**
 * What each key with a daily limit moved, by the hour in which the write was sent, fees included.
 * Writes in the request queue are counted under `infinity`.
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

/** Append-only: every time an operation was about to leave. */
export const sends = tallyhook.table(
  'sends',
  {
    operationId: text('operation_id').notNull(),
    /** Wide enough for a queued write that is tried every second until its end. */
    n: integer().notNull(),
    startedAt: instant('started_at').notNull(),
    deadlineAt: instant('deadline_at').notNull(),
    daemonId: text('daemon_id').notNull(),
    epoch: bigint({ mode: 'bigint' }).notNull(),
    /** Why an earlier send allowed this one: null for the first. */
    after: text(),
  },
  (t) => [primaryKey({ columns: [t.operationId, t.n] })],
);

/** When people stopped all writes, and when they released them; the standing one has no release. */
export const freezes = tallyhook.table('freezes', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  frozenAt: instant('frozen_at').notNull(),
  frozenBy: text('frozen_by').notNull(),
  reason: text().notNull(),
  releasedAt: instant('released_at'),
  releasedBy: text('released_by'),
  releaseReason: text('release_reason'),
});

/** Wallets whose new writes wait for one observation; a hold that has run out means nothing. */
export const holds = tallyhook.table('holds', {
  walletKey: text('wallet_key').primaryKey(),
  until: instant().notNull(),
});

/** What people said of an operation: one proposes, another owner approves. */
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
