/**
 * The content of a reconciliation report, which is stored, hashed and rendered. It depends only on
 * the database and the parameters: the same cut-off gives the same bytes. Amounts are decimal
 * strings, instants RFC 3339 in UTC.
 */
import type { FindingList } from './findings.ts';

type MovementSums = {
  /** Posted operations minus reversed ones. */
  operations: number;
  amount: string;
  fees: string;
};

export type Movement = MovementSums & {
  kind: string;
  reason_type: string | null;
  /** The same of the period before; reports made by earlier releases have none. */
  before?: MovementSums;
};

/** Opening + incoming − outgoing − fees = closing. */
export type RollForward = {
  /** Kind of the accounts, or name of one account. */
  name: string;
  accounts: number;
  opening: string;
  /**
   * Part of the opening that the closed period before did not know at its cut-off; without one,
   * what was recorded after this period had begun.
   */
  prior_period: string;
  incoming: string;
  outgoing: string;
  fees: string;
  closing: string;
};

/** Opening + minted − burned + found − missing + surplus = held, in tokens. */
export type Supply = {
  contract_id: string;
  opening: number;
  minted: number;
  burned: number;
  /** Held, but not in the ledger. */
  found: number;
  /** In the ledger, but no longer held. */
  missing: number;
  /** Burned in the ledger, but held. */
  surplus: number;
  held: number;
};

/** An entry that took effect in a closed period and was recorded after its cut-off. */
export type PriorPeriodLine = {
  transaction: string;
  account: string;
  amount: string;
  kind: string;
  reason_type: string | null;
  operation_id: string | null;
  effective_at: string;
  recorded_at: string;
};

/** Positive and negative amounts, never netted. */
type UpAndDown = {
  up: { count: number; amount: string };
  down: { count: number; amount: string };
};

/** From the ledger to the observed balance, over all opened wallets; sums to `observed`. */
export type WalletStatement = {
  wallets: number;
  /** As of the end of the period. */
  ledger: string;
  after_period: string;
  posted_after_observation: string;
  not_yet_posted: string;
  in_transit: string;
  drift_up: string;
  drift_down: string;
  unexplained_up: string;
  unexplained_down: string;
  observed: string;
};

/** Open operations that the newest observation of a wallet includes. */
export type InTransit = { addr: string; amount: string; operations: string[] };

export type Coverage = {
  in_scope: number;
  checked: number;
  stale: number;
  never_observed: number;
  inconclusive: { cause: string; count: number }[];
  unopened: { cause: string; count: number }[];
  oldest_check_at: string | null;
};

export type ReconciliationContent = {
  format: 1;
  /** `balanced`, or the number of breaks. */
  headline: string;
  verdict: 'balanced' | 'breaks';
  /** Printed above the title; null: none is set. */
  organisation: string | null;
  /** IANA name of the zone in which people are shown times. */
  time_zone: string;
  period: { from: string; to: string };
  /** True while the period still runs; the same report later has other figures. */
  provisional: boolean;
  /**
   * The end of the period, or of a provisional report when it was made. What began later is left
   * out, and ages are counted up to it. Observations may be newer, up to the cut-off.
   */
  as_of: string;
  cut_off: {
    known_at: string | null;
    batch: string;
    transactions: string;
    entries: string;
    /** `<head>:<batches>`, as `verify --anchor` takes it. */
    chain_head: string | null;
  };
  breaks: FindingList;
  open_items: FindingList;
  movements: {
    total: number;
    /** The period that this one is compared with, and its fees. */
    before?: { from: string; to: string; fees: string };
    listed: Movement[];
  };
  fees: string;
  trial_balance: { accounts: number; debit: string; credit: string };
  roll_forward: RollForward[];
  /** Of the newest closed period that ends at or before the begin of this one, if any. */
  prior_period: {
    closed_until: string | null;
    known_at: string | null;
    total: number;
    listed: PriorPeriodLine[];
  };
  /** Operators, fees and collection; `observed` if the account is a configured wallet. */
  own_accounts: { total: number; listed: (RollForward & { observed: boolean })[] };
  wallets: {
    statement: WalletStatement;
    drift: UpAndDown;
    /** Open drifts by the time since the first observation, youngest first. */
    drift_ages: { bucket: string; count: number; up: string; down: string }[];
    drifts_closed: { state: string; count: number }[];
    /** Median time from the first observation to the end of those drifts. */
    drift_resolution_median_s: number | null;
    in_transit: { total: number; listed: InTransit[] };
  };
  tokens: {
    supply: { total: number; listed: Supply[] };
    writes: { settled: number; failed: number; pending: number };
  };
  coverage: Coverage;
};
