/**
 * What the difference means: the accepted state of wallets and tokens, drifts with their life, and
 * explanations that wait for a second look. Only `reconciler/` writes here.
 */

import { bigint, index, integer, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm/sql';
import { instant, json, tallyhook, whole } from '../db/columns.ts';

export const wallets = tallyhook.table('wallets', {
  /** The address in lower case; `addr` keeps the first spelling. */
  key: text().primaryKey(),
  addr: text().notNull(),
  status: integer(),
  observedBalance: whole('observed_balance'),
  /** When the request of the newest judged look started. */
  observedAt: instant('observed_at'),
  /** Set once the opening was wanted; null means `unopened`: shown, never in drift. */
  openedAt: instant('opened_at'),
  /** The newest look that was clean and fully explained; what settles operations. */
  quietAt: instant('quiet_at'),
  /**
   * What the ledger, executed and open operations made of the balance at the newest judged look.
   */
  ledgerAtObservation: whole('ledger_at_observation'),
  observationId: text('observation_id'),
  /** explained, drifting, inconclusive or unopened, and why. */
  verdict: text().notNull(),
  cause: text(),
  /** Looks in a row that were not conclusive. */
  unquietObservations: integer('unquiet_observations').notNull().default(0),
  /** A residual seen once: it is confirmed when a later look agrees. */
  suspectedAmount: whole('suspected_amount'),
  suspectedAt: instant('suspected_at'),
});

export const tokens = tallyhook.table(
  'tokens',
  {
    contractId: whole('contract_id').notNull(),
    tokenId: whole('token_id').notNull(),
    owner: text(),
    creator: text(),
    uri: text(),
    metadata: text(),
    extraData: text('extra_data'),
    status: integer(),
    locked: integer(),
    lastTxHash: text('last_tx_hash'),
    createdText: text('created_text'),
    ownedText: text('owned_text'),
    observedAt: instant('observed_at').notNull(),
    /** present or absent; absent only after two looks said so. */
    presence: text().notNull(),
    absentSince: instant('absent_since'),
  },
  (t) => [primaryKey({ columns: [t.contractId, t.tokenId] })],
);

export const drifts = tallyhook.table(
  'drifts',
  {
    id: text().primaryKey(),
    walletKey: text('wallet_key').notNull(),
    addr: text().notNull(),
    amount: whole().notNull(),
    /** open, proposed, booked, linked, dismissed, returned, explained. */
    state: text().notNull(),
    suspectedAt: instant('suspected_at').notNull(),
    openedAt: instant('opened_at').notNull(),
    closedAt: instant('closed_at'),
    /** The balance before the change was last explained then; the change lies between the two. */
    windowFrom: instant('window_from'),
    windowTo: instant('window_to').notNull(),
    evidence: json().notNull(),
    assignee: text(),
    proposal: json(),
    approvedBy: text('approved_by'),
  },
  (t) => [
    index('drifts_open').on(t.walletKey).where(sql`closed_at is null`),
    index('drifts_by_wallet').on(t.walletKey, t.openedAt),
  ],
);

/** Append-only: everything that happened to a drift. */
export const driftActions = tallyhook.table(
  'drift_actions',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    driftId: text('drift_id')
      .notNull()
      .references(() => drifts.id),
    action: text().notNull(),
    at: instant().notNull(),
    by: text().notNull(),
    detail: json(),
  },
  (t) => [index('drift_actions_by_drift').on(t.driftId, t.id)],
);

/** The one explanation of an unknown outcome that waits for a second, later look to agree. */
export const candidates = tallyhook.table('candidates', {
  operationId: text('operation_id').primaryKey(),
  outcome: text().notNull(),
  basis: text().notNull(),
  evidence: json().notNull(),
  /** When the newest look that it rests on ended; the agreeing look must start later. */
  seenAt: instant('seen_at').notNull(),
  observationStartedAt: instant('observation_started_at').notNull(),
});

/** Contradictions of our assumptions: named once, counted after. */
export const findings = tallyhook.table(
  'findings',
  {
    id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
    kind: text().notNull(),
    subject: text().notNull(),
    detail: json().notNull(),
    firstAt: instant('first_at').notNull(),
    lastAt: instant('last_at').notNull(),
    count: integer().notNull(),
  },
  (t) => [uniqueIndex('findings_once').on(t.kind, t.subject)],
);
