/**
 * What a report finds: breaks and open items, each with its kind, subject, amount, age and what to
 * do.
 *
 * A **break** is something that is wrong, or that people must end: a confirmed open drift; a lost
 * answer that is older than its quiescence, or undecided; a posting that was set aside or is
 * overdue; an NFT write that never ended; and any figure that does not tie: operations and ledger,
 * the ledger and itself, the ledger and what was observed, booked tokens and held ones. An **open
 * item** is something that still has time, or is only shown: writes on their way, postings that are
 * due, a difference that waits for its second look, wallets that are unopened, stale or
 * inconclusive. One report with no break is balanced, whatever items are open. Pure.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';

/** Kinds of break, the gravest first, and what to do about one. */
export const BREAKS = {
  trial_balance_off: 'The books do not sum to zero: stop writes and verify the database',
  numbering_gap: 'Batches or transactions are missing: restore the database and verify it',
  batch_incomplete: 'Rows of a ledger batch are missing: restore the database and verify it',
  transaction_unbalanced: 'A guard was switched off: verify the database, find who changed it',
  account_off: 'The balance is not the sum of its entries: verify the database',
  roll_forward_off: 'Opening, movements and closing do not tie: verify the database',
  posting_without_operation: 'Find the write that this transaction posts',
  posted_too_often: 'Find why the write was posted again; reverse the surplus',
  posting_missing: 'The write counts postings that are not in the books: verify the database',
  posted_differently:
    'Compare the write with its entries; if a setting changed, reverse and repost',
  reversal_differs: 'A reversal does not negate what it takes back: verify the database',
  posting_quarantined: 'Read the problem, mend its cause, then release the row to the ledger',
  posting_overdue: 'The ledger does not post: see that its worker runs',
  observed_not_explained: 'Look at the wallet again; if it stays, find the change made elsewhere',
  drift_open: 'Find the change made elsewhere; then link it, book it or dismiss it',
  outcome_undecided: 'Ask the service or the parties, then decide; another owner approves',
  outcome_unknown: 'Its outcome is not known after its time: watch the wallets or token it touches',
  nft_write_without_end: 'Look at the token; the chain should have ended this write',
  token_never_seen: 'The write is settled but its token was never seen: look at the token',
  nft_missing: 'Booked as held but gone: find the burn or transfer made elsewhere',
  nft_surplus: 'Booked as burned but held: look at the token',
} as const;

/** Kinds of open item and what they mean. */
export const OPEN_ITEMS = {
  write_in_flight: 'Still within its time: nothing to do',
  posting_due: 'Executed and about to be posted: nothing to do',
  drift_suspected: 'Seen once: a second look confirms or clears it',
  wallet_inconclusive: 'No look could tell for long: wait for a quiet moment of the wallet',
  wallet_undetermined: 'Too many open writes to tell which of them the balance shows',
  wallet_stale: 'Not looked at for too long: see the budget of looks',
  wallet_unopened: 'Its opening balance was not taken yet: writes are open on it',
  nft_write_pending: 'The chain has not ended this write yet',
  nft_not_booked: 'Tokens that exist but were never booked: minted elsewhere or before us',
  write_not_mapped: 'A write of unknown kind was executed: map its path in the settings',
} as const;

export type BreakKind = keyof typeof BREAKS;
export type ItemKind = keyof typeof OPEN_ITEMS;
export type FindingKind = BreakKind | ItemKind;

/** One line of a report; amounts are decimal text, instants RFC 3339 UTC. */
export type Finding = {
  kind: FindingKind;
  /**
   * An operation, a drift, `wallet:<addr>`, `token:<contract>:<id>`, a transaction or an account.
   */
  subject: string;
  amount: string | null;
  since: string | null;
  /** Seconds from `since` to the report's own instant, at least 0. */
  age_s: number | null;
  assignee: string | null;
  evidence: Json;
  next: string;
};

/** A finding as a query gives it. */
export interface FoundRow {
  kind: FindingKind;
  subject: string;
  amount: bigint | null;
  since: Instant | null;
  assignee: string | null;
  evidence: Json;
  /** How many there are of this kind, listed or not. */
  total: number;
}

/** A bounded list with its full counts. */
export type FindingList = {
  total: number;
  by_kind: { kind: FindingKind; count: number }[];
  /** The gravest kinds first; at most the bound of the report. */
  listed: Finding[];
};

export interface Findings {
  /** Takes the rows of one query; each kind comes from one query only. */
  take(rows: readonly FoundRow[]): void;
  /** Takes one finding that a rule made. */
  add(row: Omit<FoundRow, 'total'>): void;
  lists(): { breaks: FindingList; openItems: FindingList };
}

/** Collects findings as of an instant; keeps at most `max` of each list and counts all. */
export function makeFindings(asOf: Instant, max: number): Findings {
  const found = new Map<FindingKind, { count: number; listed: Finding[] }>();
  const put = (row: Omit<FoundRow, 'total'>, count: number) => {
    const kind = found.get(row.kind) ?? { count: 0, listed: [] };
    found.set(row.kind, kind);
    kind.count += count;
    if (kind.listed.length < max) kind.listed.push(toFinding(row, asOf));
  };
  return {
    take(rows) {
      const counted = new Set<FindingKind>();
      for (const { total, ...row } of rows) {
        put(row, counted.has(row.kind) ? 0 : total);
        counted.add(row.kind);
      }
    },
    add: (row) => put(row, 1),
    lists() {
      const listOf = (kinds: readonly FindingKind[]): FindingList => {
        const present = kinds.flatMap((kind) => {
          const of = found.get(kind);
          return of ? [{ kind, ...of }] : [];
        });
        return {
          total: present.reduce((sum, { count }) => sum + count, 0),
          by_kind: present.map(({ kind, count }) => ({ kind, count })),
          listed: present.flatMap(({ listed }) => listed).slice(0, max),
        };
      };
      return {
        breaks: listOf(Object.keys(BREAKS) as BreakKind[]),
        openItems: listOf(Object.keys(OPEN_ITEMS) as ItemKind[]),
      };
    },
  };
}

/** The texts of both lists by kind. */
export const NEXT: Readonly<Record<FindingKind, string>> = { ...BREAKS, ...OPEN_ITEMS };

function toFinding(row: Omit<FoundRow, 'total'>, asOf: Instant): Finding {
  const { kind, subject, amount, since, assignee, evidence } = row;
  return {
    kind,
    subject,
    amount: amount === null ? null : amount.toString(),
    since: since === null ? null : isoText(since),
    age_s: since === null ? null : Math.max(0, Math.floor((asOf - since) / 1000)),
    assignee,
    evidence,
    next: NEXT[kind],
  };
}
