/**
 * Tables of double-entry bookkeeping, written only by `ledger/`. Entries, transactions and batches
 * are append-only and must balance; triggers refuse every other change, also a row without its
 * batch, transaction or account. Foreign keys would check each row again, a fifth of a posting.
 */
import { bytes, instant, tallyhook, whole } from '../db/columns.ts';
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
  uniqueIndex,
} from '../db/drizzle.ts';
import { decisions } from '../operations/tables.ts';
import { TRANSACTION_KINDS } from '../resources/ledger/ledger.ts';
import { MOVE_KINDS } from '../resources/ledger/token.ts';

/** `wallet:<addr>`, `operator:<no>`, `fees`, `collection`, `opening`, `external`. */
export const accounts = tallyhook.table(
  'accounts',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    name: text().notNull(),
    kind: text().notNull(),
    asset: text().notNull().default('service_token'),
    balance: whole().notNull(),
    /** The number of entries so far. */
    version: bigint({ mode: 'bigint' }).notNull(),
    openedAt: instant('opened_at').notNull(),
  },
  (t) => [uniqueIndex('accounts_by_name').on(sql`lower(${t.name})`, t.asset)],
);

/** One commit of the writer; `recorded_at` rises strictly from batch to batch. */
export const batches = tallyhook.table('batches', {
  id: bigint({ mode: 'bigint' }).primaryKey(),
  recordedAt: instant('recorded_at').notNull().unique(),
  transactions: integer().notNull(),
  entries: integer().notNull(),
});

/**
 * The hash chain, a row per batch, inserted by a trigger when the batch commits. `batch`,
 * `transactions`, `movements` and `evidence` are SHA-256 digests of the rows, concatenated in their
 * order; `head` is the digest of the previous head and these four.
 */
export const chain = tallyhook.table('chain', {
  batchId: bigint('batch_id', { mode: 'bigint' }).primaryKey(),
  lastTransaction: bigint('last_transaction', { mode: 'bigint' }).notNull(),
  batch: bytes().notNull(),
  transactions: bytes().notNull(),
  movements: bytes().notNull(),
  evidence: bytes().notNull(),
  head: bytes().notNull(),
});

/**
 * Evidence of all stages that is not in the chain yet: a row for up to a thousand that a statement
 * inserted. Triggers insert it, and move it to the next batch; the daemon may not write it.
 */
export const unchainedRows = tallyhook.table('unchained_rows', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  /** `EVIDENCE_KEYS` of chain/link.ts has all. */
  source: text().notNull(),
  rowIds: text('row_ids').array().notNull(),
  digests: bytes().notNull(),
});

/** Append-only, by the same trigger: whose digests are in `chain.evidence`, in their order. */
export const chainedRows = tallyhook.table(
  'chained_rows',
  {
    batchId: bigint('batch_id', { mode: 'bigint' }).notNull(),
    source: text().notNull(),
    rowIds: text('row_ids').array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.batchId, t.source] })],
);

export const transactions = tallyhook.table(
  'transactions',
  {
    id: bigint({ mode: 'bigint' }).primaryKey(),
    batchId: bigint('batch_id', { mode: 'bigint' }).notNull(),
    kind: text({ enum: TRANSACTION_KINDS }).notNull(),
    operationId: text('operation_id'),
    /** 1 for the first posting of the operation, 2 for its reversal, 3 for the next posting. */
    posting: integer(),
    postingRequestId: text('posting_request_id'),
    reverses: bigint({ mode: 'bigint' }),
    reasonType: text('reason_type'),
    reference: text(),
    txAppNo: whole('tx_app_no'),
    txLogNo: whole('tx_log_no'),
    requestedBy: text('requested_by'),
    effectiveAt: instant('effective_at').notNull(),
    effectiveBasis: text('effective_basis').notNull(),
    recordedAt: instant('recorded_at').notNull(),
    /** A trigger refuses any other number of entries. */
    entryCount: smallint('entry_count').notNull(),
  },
  (t) => [
    uniqueIndex('transactions_by_operation').on(t.operationId, t.posting),
    uniqueIndex('transactions_by_request')
      .on(t.postingRequestId)
      .where(sql`posting_request_id is not null`),
    index('transactions_by_effective').on(t.effectiveAt),
    // Those that day balances of their time may lack; see day-ends.ts.
    index('transactions_late').on(t.id).where(sql`recorded_at - effective_at > interval '1 hour'`),
  ],
);

export const entries = tallyhook.table(
  'entries',
  {
    transactionId: bigint('transaction_id', { mode: 'bigint' }).notNull(),
    line: smallint().notNull(),
    accountId: bigint('account_id', { mode: 'bigint' }).notNull(),
    amount: whole().notNull(),
    balanceAfter: whole('balance_after').notNull(),
    version: bigint({ mode: 'bigint' }).notNull(),
    effectiveAt: instant('effective_at').notNull(),
    recordedAt: instant('recorded_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.transactionId, t.line] }),
    uniqueIndex('entries_by_version').on(t.accountId, t.version),
  ],
);

/**
 * Append-only: the ends of days whose balances are kept. Kept are the transactions up to
 * `last_transaction` that took effect before `at`; see day-ends.ts.
 */
export const dayEnds = tallyhook.table('day_ends', {
  at: instant().primaryKey(),
  lastBatch: bigint('last_batch', { mode: 'bigint' })
    .notNull()
    .references(() => batches.id),
  lastTransaction: bigint('last_transaction', { mode: 'bigint' }).notNull(),
  /** Entries of all batches up to the last one. */
  entries: bigint({ mode: 'bigint' }).notNull(),
  madeAt: instant('made_at').notNull(),
});

/** Append-only: balances at the end of a day, of the accounts that differ from the one before. */
export const dayBalances = tallyhook.table(
  'day_balances',
  {
    accountId: bigint('account_id', { mode: 'bigint' })
      .notNull()
      .references(() => accounts.id),
    at: instant()
      .notNull()
      .references(() => dayEnds.at),
    balance: whole().notNull(),
    /** How many entries it sums. */
    entries: bigint({ mode: 'bigint' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.at] })],
);

/** Postings that later stages request (opening, booking, reversal). */
export const postingRequests = tallyhook.table(
  'posting_requests',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    /** The account that changes by `amount`; `counter` is `opening` or `external`. */
    account: text().notNull(),
    counter: text().notNull(),
    amount: whole().notNull(),
    effectiveAt: instant('effective_at').notNull(),
    effectiveBasis: text('effective_basis').notNull(),
    requestedBy: text('requested_by').notNull(),
    reason: text(),
    /** Of a reversal: the request that it reverses. */
    reverses: text(),
    /**
     * Of an opening: when the observation behind it began, and the version of the account when it
     * was computed. Entries that are posted later but took effect before need a correction.
     */
    seenAt: instant('seen_at'),
    seenVersion: bigint('seen_version', { mode: 'bigint' }),
    requestedAt: instant('requested_at').notNull(),
    postedAt: instant('posted_at'),
    problem: text(),
  },
  (t) => [
    index('posting_requests_unposted')
      .on(t.requestedAt)
      .where(sql`posted_at is null and problem is null`),
    index('posting_requests_unposted_on')
      .on(sql`lower(account)`)
      .where(sql`posted_at is null and problem is null`),
    // Since when a balance is known: the earliest of its openings and their corrections.
    index('posting_requests_openings')
      .on(sql`lower(account)`, t.effectiveAt)
      .where(sql`kind = 'opening'`),
    index('posting_requests_quarantined')
      .on(t.requestedAt)
      .where(sql`posted_at is null and problem is not null`),
  ],
);

/**
 * Append-only: what happened to NFTs. Those of writes have an operation; the others are openings,
 * and what was made elsewhere. A reversal names the movement that it takes back.
 */
export const nftMovements = tallyhook.table(
  'nft_movements',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    batchId: bigint('batch_id', { mode: 'bigint' })
      .notNull()
      .references(() => batches.id),
    kind: text({ enum: [...MOVE_KINDS, 'reversal'] }).notNull(),
    contractId: whole('contract_id').notNull(),
    tokenId: whole('token_id').notNull(),
    fromAddr: text('from_addr'),
    toAddr: text('to_addr'),
    txHash: text('tx_hash'),
    operationId: text('operation_id'),
    posting: integer(),
    reverses: bigint({ mode: 'bigint' }),
    /** Of what an observation showed: the start of the one before, which did not show it. */
    notBefore: instant('not_before'),
    effectiveAt: instant('effective_at').notNull(),
    effectiveBasis: text('effective_basis').notNull(),
    recordedAt: instant('recorded_at').notNull(),
  },
  (t) => [
    uniqueIndex('nft_movements_by_operation').on(t.operationId, t.posting),
    index('nft_movements_by_token').on(t.contractId, t.tokenId, t.id),
    index('nft_movements_by_batch').on(t.batchId, t.id),
  ],
);

/**
 * Holders of tokens as observations showed them, until the journal of movements shows them too: a
 * queue, in the order of the ids.
 */
export const observedHolders = tallyhook.table(
  'observed_holders',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    contractId: whole('contract_id').notNull(),
    tokenId: whole('token_id').notNull(),
    /** Null when the token does not exist; empty when its owner is not known. */
    owner: text(),
    /** Whether it was known before that the token did not exist. */
    isNew: boolean('is_new').notNull(),
    /** The last hash of the token. */
    txHash: text('tx_hash'),
    /** When the observation that first showed this began, and the one before it, if any. */
    notBefore: instant('not_before'),
    observedAt: instant('observed_at').notNull(),
    requestedAt: instant('requested_at').notNull(),
    /** Why it cannot be recorded. */
    problem: text(),
  },
  (t) => [index('observed_holders_by_token').on(t.contractId, t.tokenId)],
);

/**
 * The fee rules that the setting ledger.fee_mode had, the newest last. Writes that were posted
 * under another rule than the newest one says are reversed and posted again.
 */
export const feeRules = tallyhook.table('fee_rules', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  /** `FeeRules` of operations/, as JSON; instants in ms. */
  rules: text().notNull(),
  setAt: instant('set_at').notNull(),
  /** Writes whose effects it changed, and those of them that were posted again. */
  changed: bigint({ mode: 'bigint' }).notNull(),
  reposted: bigint({ mode: 'bigint' }).notNull(),
  /** When no write was left under another rule, and this was announced. */
  appliedAt: instant('applied_at'),
});

/**
 * Proposals to post the gives of an operator from a wallet. One is in force once another owner
 * approved its decision; it ends only by being rejected before.
 */
export const operatorWallets = tallyhook.table(
  'operator_wallets',
  {
    /** `operator:<no>`, the subject of the decision. */
    account: text().notNull(),
    n: smallint().notNull(),
    /** What the decision says. */
    addr: text().notNull(),
    /** An owner; that of the proposer withdraws it. */
    rejectedBy: text('rejected_by'),
    rejectedAt: instant('rejected_at'),
    rejectReason: text('reject_reason'),
  },
  (t) => [
    primaryKey({ columns: [t.account, t.n] }),
    foreignKey({
      name: 'operator_wallets_decided',
      columns: [t.account, t.n, t.addr],
      foreignColumns: [decisions.subject, decisions.n, decisions.decision],
    }),
    uniqueIndex('operator_wallets_once').on(t.account).where(sql`rejected_at is null`),
    uniqueIndex('operator_wallets_by_wallet')
      .on(sql`lower(${t.addr})`)
      .where(sql`rejected_at is null`),
  ],
);
