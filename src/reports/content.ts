/**
 * The content of a reconciliation report: what is stored, hashed and rendered. Everything in it
 * follows from the database and the question alone: the same cut-off gives the same bytes. Amounts
 * are decimal text of any size, counts are numbers, instants RFC 3339 UTC. Types only.
 */
import type { FindingList } from './findings.ts';

export type Movement = {
  kind: string;
  reason_type: string | null;
  /** Posted writes minus those that were taken back. */
  operations: number;
  amount: string;
  fees: string;
};

/** Opening + incoming − outgoing − fees = closing. */
export type RollForward = {
  /** A kind of account, or one account. */
  name: string;
  accounts: number;
  opening: string;
  /** The part of the opening that was recorded only after the period had begun. */
  prior_period: string;
  incoming: string;
  outgoing: string;
  fees: string;
  closing: string;
};

/** Opening + minted − burned + found − missing + surplus = held. */
export type Supply = {
  contract_id: string;
  opening: number;
  minted: number;
  burned: number;
  /** Held but never booked. */
  found: number;
  /** Booked as held but gone. */
  missing: number;
  /** Booked as burned but held. */
  surplus: number;
  held: number;
};

/** Signs are kept apart: up and down are never netted. */
export type UpAndDown = {
  up: { count: number; amount: string };
  down: { count: number; amount: string };
};

/** What lies between the ledger and the service, over all opened wallets; it sums to `observed`. */
export type WalletStatement = {
  wallets: number;
  ledger: string;
  posted_after_observation: string;
  not_yet_posted: string;
  in_transit: string;
  drift_up: string;
  drift_down: string;
  unexplained_up: string;
  unexplained_down: string;
  observed: string;
};

/** Open writes that a wallet's newest look already shows. */
export type InTransit = { addr: string; amount: string; operations: string[] };

export type Coverage = {
  in_scope: number;
  checked: number;
  stale: number;
  never_seen: number;
  /** By cause. */
  inconclusive: { cause: string; count: number }[];
  unopened: { cause: string; count: number }[];
  oldest_check_at: string | null;
};

export type ReconciliationContent = {
  format: 1;
  /** The first line: `balanced`, or how many breaks. */
  headline: string;
  verdict: 'balanced' | 'breaks';
  period: { from: string; to: string };
  /**
   * The instant that ages are counted to: the end of the period, or the cut-off when that is later.
   */
  as_of: string;
  cut_off: {
    known_at: string | null;
    batch: string;
    transactions: string;
    entries: string;
    chain_head: string | null;
  };
  breaks: FindingList;
  open_items: FindingList;
  movements: { total: number; listed: Movement[] };
  fees: string;
  trial_balance: { accounts: number; debit: string; credit: string };
  roll_forward: RollForward[];
  /** Operators, fees and collection one by one; `observed` when a wallet stands behind it. */
  house_accounts: { total: number; listed: (RollForward & { observed: boolean })[] };
  wallets: {
    statement: WalletStatement;
    drift: UpAndDown;
    drifts_closed: { state: string; count: number }[];
    in_transit: { total: number; listed: InTransit[] };
  };
  tokens: {
    supply: { total: number; listed: Supply[] };
    writes: { settled: number; failed: number; pending: number };
  };
  coverage: Coverage;
};
