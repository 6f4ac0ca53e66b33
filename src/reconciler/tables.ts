/**
 * The accepted state of wallets and tokens, drifts with their history, and candidates. Only
 * `reconciler/` writes here.
 */

import { instant, json, tallyhook, whole } from '../db/columns.ts';
import { bigint, index, integer, primaryKey, sql, text, uniqueIndex } from '../db/drizzle.ts';
import { PRESENCES } from '../resources/ledger/token.ts';
import { VERDICTS } from '../resources/ledger/wallet.ts';
import { OUTCOMES } from '../resources/operations/decision.ts';

export const wallets = tallyhook.table(
  'wallets',
  {
    /** The address in lower case; `addr` keeps the first spelling. */
    key: text().primaryKey(),
    addr: text().notNull(),
    status: integer(),
    observedBalance: whole('observed_balance'),
    /** Of the newest processed observation: start and end of its request. */
    observedAt: instant('observed_at'),
    observationEndedAt: instant('observation_ended_at'),
    /** When the opening was requested; null means `unopened`: shown, never in drift. */
    openedAt: instant('opened_at'),
    /** Start of the newest observation that operations and drifts explain; settles operations. */
    consistentAt: instant('consistent_at'),
    /** Start of the newest of these at which no operation was merely possible. */
    quietAt: instant('quiet_at'),
    /** The ledger's balance at the newest processed observation, posting requests included. */
    ledgerAtObservation: whole('ledger_at_observation'),
    observationId: text('observation_id'),
    /** When the newest observation was evaluated; what became known later was not counted in it. */
    evaluatedAt: instant('evaluated_at'),
    /** `cause` says why. */
    verdict: text({ enum: VERDICTS }).notNull(),
    cause: text(),
    /** A difference seen once, between these bounds; a later observation confirms it. */
    suspectedMin: whole('suspected_min'),
    suspectedMax: whole('suspected_max'),
    suspectedAt: instant('suspected_at'),
    /** When a second observation showed that the service does not show it any more. */
    vanishedAt: instant('vanished_at'),
    /**
     * The version of its account that the newest evaluation read; entries of later versions were
     * not counted in it.
     */
    ledgerVersion: bigint('ledger_version', { mode: 'bigint' }),
  },
  (t) => [
    index('wallets_by_observation').on(t.observedAt),
    index('wallets_vanished').on(t.vanishedAt).where(sql`vanished_at is not null`),
  ],
);

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
    presence: text({ enum: PRESENCES }).notNull(),
    absentSince: instant('absent_since'),
    /** The holder that was given to the ledger last; null if that was none. */
    recordedOwner: text('recorded_owner'),
    /** Since when observations show another one, and the start of the one before them. */
    differsSince: instant('differs_since'),
    differsAfter: instant('differs_after'),
  },
  (t) => [
    primaryKey({ columns: [t.contractId, t.tokenId] }),
    index('tokens_by_uri')
      .on(t.contractId, sql`hashtextextended(uri, 0)`)
      .where(sql`uri is not null`),
  ],
);

export const drifts = tallyhook.table(
  'drifts',
  {
    id: text().primaryKey(),
    walletKey: text('wallet_key').notNull(),
    addr: text().notNull(),
    /** Null until it is exact; then equal to both bounds. */
    amount: whole(),
    amountMin: whole('amount_min').notNull(),
    amountMax: whole('amount_max').notNull(),
    /** See `FOLLOWS` of drifts/states.ts. */
    state: text().notNull(),
    suspectedAt: instant('suspected_at').notNull(),
    openedAt: instant('opened_at').notNull(),
    closedAt: instant('closed_at'),
    /** The last consistent observation before the change, and the end of the confirming one. */
    windowFrom: instant('window_from'),
    windowTo: instant('window_to').notNull(),
    evidence: json().notNull(),
    /** The probable cause, and the proposal that fits it: { drift_id, decision, operation_id }. */
    cause: text().notNull(),
    prepared: json(),
    /** Of the cause operator_wallet: { operator_no, gives }. */
    operator: json(),
    /** The other drift of one transfer that was made elsewhere between two wallets. */
    counterpart: text(),
    assignee: text(),
    /** What closed it: an observation, or a decision. */
    closedBy: json('closed_by'),
  },
  (t) => [
    index('drifts_open').on(t.walletKey).where(sql`closed_at is null`),
    index('drifts_open_amount').on(t.amount).where(sql`closed_at is null`),
    index('drifts_by_wallet').on(t.walletKey, t.openedAt),
    index('drifts_closed').on(t.closedAt).where(sql`closed_at is not null`),
  ],
);

/** Append-only history of drifts. */
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

/** The finding about an unknown operation that a later observation has to confirm. */
export const candidates = tallyhook.table('candidates', {
  operationId: text('operation_id').primaryKey(),
  outcome: text({ enum: OUTCOMES }).notNull(),
  basis: text().notNull(),
  evidence: json().notNull(),
  /** End of the newest observation it rests on; the confirming one must start later. */
  seenAt: instant('seen_at').notNull(),
  observationStartedAt: instant('observation_started_at').notNull(),
});

/** What holds now of the watchdog and of the rules for alerts; deleted when it ends. */
export const alerts = tallyhook.table(
  'alerts',
  {
    id: text().primaryKey(),
    rule: text().notNull(),
    /** What it is about, such as the id of an operation. */
    subject: text().notNull(),
    raisedAt: instant('raised_at').notNull(),
    /** The members of its events. */
    detail: json().notNull(),
  },
  (t) => [uniqueIndex('alerts_once').on(t.rule, t.subject)],
);

/** Append-only: who released what from quarantine. */
export const quarantineReleases = tallyhook.table('quarantine_releases', {
  id: bigint({ mode: 'bigint' }).generatedAlwaysAsIdentity().primaryKey(),
  /** operation, posting_request or observation. */
  kind: text().notNull(),
  /** The id of the operation or posting request, or the target of the observation. */
  subject: text().notNull(),
  /** Why it was quarantined. */
  problem: text().notNull(),
  releasedAt: instant('released_at').notNull(),
  releasedBy: text('released_by').notNull(),
  releasedKey: text('released_key').notNull(),
  reason: text().notNull(),
});
