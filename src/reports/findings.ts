/**
 * The findings of a report: breaks and open items. A **break** is an error, or needs a decision by
 * people; a report without breaks is balanced. An **open item** may still resolve by itself, or is
 * informative.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';

const FREEZE = 'npx tallyhook freeze --reason …';
const DOCTOR = 'npx tallyhook doctor';
const DAMAGED = `stop writes (${FREEZE}), find the change (npx tallyhook verify), restore a backup`;

/** Kinds of break with what to do, most severe first; each names a command. */
export const BREAKS = {
  trial_balance_off: `The ledger does not sum to zero: ${DAMAGED}`,
  numbering_gap: `Batches or transactions are missing: ${DAMAGED}`,
  batch_incomplete: `Rows of a ledger batch are missing: ${DAMAGED}`,
  transaction_unbalanced: `A guard was disabled: ${DAMAGED}`,
  account_off: `The balance is not the sum of its entries: ${DAMAGED}`,
  roll_forward_off: `Opening, movements and closing do not agree: ${DAMAGED}`,
  posting_without_operation: `The operation of this transaction is missing: ${DAMAGED}`,
  posted_too_often: `The operation was posted again: ${DAMAGED}`,
  posting_missing: `A posting of the operation is missing in the ledger: ${DAMAGED}`,
  posted_differently:
    'Compare the operation with its entries (npx tallyhook export operations); if a setting of ' +
    'the ledger changed, set it back',
  reversal_differs: `The reversal does not negate its transaction: ${DAMAGED}`,
  posting_quarantined:
    'Correct the reason, then: npx tallyhook quarantine release <subject> --reason …',
  observation_quarantined:
    'It cannot be processed: correct why, then: npx tallyhook quarantine release <subject> ' +
    '--reason …',
  posting_overdue: `The ledger does not post: see why with ${DOCTOR} and in the log`,
  observed_not_explained:
    'If the next observation agrees it becomes a drift: npx tallyhook drifts list --addr <wallet>',
  wallet_vanished:
    'The service no longer shows the wallet: ask it why. It ends when the wallet is observed ' +
    'again, or when the write that emptied it is reported: npx tallyhook import',
  drift_open:
    'See what is known (npx tallyhook drifts show <subject>), then propose its end: ' +
    'npx tallyhook drifts propose <subject> --reason …; another owner: ' +
    'npx tallyhook drifts approve <subject>',
  outcome_undecided:
    'Ask the service or the parties, then: npx tallyhook decisions propose <subject> executed ' +
    '(or not_executed) --reason …; another owner: npx tallyhook decisions approve <subject>',
  outcome_unknown:
    'The outcome is overdue: poll its wallets (npx tallyhook watch wallet <addr>) or token',
  nft_write_without_end:
    'The chain should have settled it: npx tallyhook watch token <contract> <id> polls it; ' +
    'if a later hash replaced its own: npx tallyhook decisions propose <subject> executed ' +
    '(or not_executed) --reason …; another owner: npx tallyhook decisions approve <subject>',
  token_never_observed:
    'It settled, but its token was not observed: npx tallyhook watch token <contract> <id>',
  nft_missing:
    'The journal of NFTs lacks its burn: poll the token, npx tallyhook watch token <contract> <id>',
  nft_surplus:
    'The journal of NFTs lacks its mint: poll the token, npx tallyhook watch token <contract> <id>',
  nft_owner_differs:
    'The journal of NFTs lacks a transfer: poll the token, npx tallyhook watch token ' +
    '<contract> <id>',
} as const;

/** True for a break that only a backup ends: the ledger contradicts itself or the operations. */
export function isDamage(kind: FindingKind): boolean {
  return NEXT[kind].includes(DAMAGED);
}

/** Kinds of open item with their meaning. */
const OPEN_ITEMS = {
  write_in_flight: 'The outcome is not overdue: nothing to do',
  posting_due: 'Executed and not yet posted: nothing to do',
  drift_suspected: 'Observed once: a second observation confirms or clears it',
  wallet_inconclusive: 'No observation was conclusive for long: wait until the wallet is quiet',
  wallet_undetermined: 'Too many open operations to find those that the balance includes',
  wallet_stale: 'Not observed for too long: check the polling budget',
  wallet_unopened: 'The opening balance is not yet booked: operations are open on the wallet',
  nft_write_pending: 'The chain has not settled the operation yet',
  nft_change_pending:
    'The journal of NFTs waits for the chain, or for an operation that may explain the change: ' +
    'nothing to do',
  nft_not_booked:
    'Tokens held, but not in the journal of NFTs: an operation that may have minted them is ' +
    'open, or the chain has not completed them',
  write_not_mapped: 'An operation of unknown kind was executed: map its path in the settings',
} as const;

type BreakKind = keyof typeof BREAKS;
type ItemKind = keyof typeof OPEN_ITEMS;
type FindingKind = BreakKind | ItemKind;

/** Amounts are decimal strings, instants RFC 3339 in UTC. */
export type Finding = {
  kind: FindingKind;
  /** Operation id, drift id, `wallet:<addr>`, `token:<contract>:<id>`, account or the like. */
  subject: string;
  amount: string | null;
  since: string | null;
  /** Seconds from `since` to `as_of` of the report, at least 0. */
  age_s: number | null;
  assignee: string | null;
  evidence: Json;
  next: string;
};

/** A finding as a row of a query. */
export interface FindingRow {
  kind: FindingKind;
  subject: string;
  amount: bigint | null;
  since: Instant | null;
  assignee: string | null;
  evidence: Json;
  /** Number of all findings of this kind, listed or not. */
  total: number;
}

export type FindingList = {
  total: number;
  by_kind: { kind: FindingKind; count: number }[];
  /** Most severe kinds first; at most `listMax`. */
  listed: Finding[];
};

export interface Findings {
  /** Adds the rows of a query; all rows of a kind must come from one query. */
  addRows(rows: readonly FindingRow[]): void;
  add(row: Omit<FindingRow, 'total'>): void;
  lists(): { breaks: FindingList; openItems: FindingList };
}

/** Lists at most `max` findings and counts all of them; ages are counted up to `asOf`. */
export function makeFindings(asOf: Instant, max: number): Findings {
  const found = new Map<FindingKind, { count: number; listed: Finding[] }>();
  const put = (row: Omit<FindingRow, 'total'>, count: number) => {
    const kind = found.get(row.kind) ?? { count: 0, listed: [] };
    found.set(row.kind, kind);
    kind.count += count;
    if (kind.listed.length < max) kind.listed.push(toFinding(row, asOf));
  };
  return {
    addRows(rows) {
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

const NEXT: Readonly<Record<FindingKind, string>> = { ...BREAKS, ...OPEN_ITEMS };

function toFinding(row: Omit<FindingRow, 'total'>, asOf: Instant): Finding {
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
