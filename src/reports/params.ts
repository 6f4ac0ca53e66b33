/** The parameters of a reconciliation: a period, the instants that it is judged at, limits. */
import type { Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { DayEnd } from '../ledger/ledger.ts';

/** Ages at which open items become breaks, in milliseconds. */
export interface Limits {
  /** How long an executed operation may be missing in observations. */
  readLagMs: number;
  /** How long after its send deadline a write can still be applied. */
  quiescenceMs: number;
  /** How long a posting may wait. */
  overdueMs: number;
  /** How long a wallet may lack a conclusive observation, and an NFT write its settlement. */
  staleMs: number;
  /** Rows per list; counts are always complete. */
  listMax: number;
}

/** What people are shown on a report. */
export interface ShownSettings {
  /** Part of the content, like the time zone. */
  organisation?: string | undefined;
  /** Times are shown in it, and days without a time begin in it; UTC by default. */
  timeZone?: string | undefined;
  /** Address of the console, to which printed reports link; not part of the content. */
  consoleUrl?: string | undefined;
}

/** Parameters as SQL takes them, with the transaction whose snapshot is read. */
export interface ReportParams {
  tx: Tx;
  from: string;
  /** Exclusive. */
  to: string;
  /** The end of the period, or now while it still runs; ages are counted up to it. */
  asOf: string;
  /** What is overdue is judged here: the end of the period, or the later cut-off. */
  judgedAt: string;
  /** The newest closed period that ends at or before the begin of this one. */
  closed: ClosedUntil | undefined;
  /** Entries of before the period are late when they were recorded at or after this instant. */
  lateSince: string;
  days: KeptDays;
  limits: Limits;
}

interface ClosedUntil {
  to: string;
  knownAt: string;
  /** The instant after its cut-off: what it did not know was recorded from here on. */
  recordedSince: string;
}

/** The newest day ends whose balances are kept: until the ends of the period, and of all. */
interface KeptDays {
  from: DayEnd | undefined;
  to: DayEnd | undefined;
  newest: DayEnd | undefined;
}

export function reportParams(
  tx: Tx,
  input: {
    from: Instant;
    to: Instant;
    asOf: Instant;
    judgedAt: Instant;
    closed?: { periodTo: Instant; knownAt: Instant } | undefined;
    days: KeptDays;
    limits: Limits;
  },
): ReportParams {
  const { from, to, asOf, judgedAt, closed, days, limits } = input;
  const instants = { from: isoText(from), to: isoText(to), asOf: isoText(asOf) };
  return {
    tx,
    ...instants,
    judgedAt: isoText(judgedAt),
    days,
    limits,
    lateSince: closed?.periodTo === from ? recordedAfter(closed.knownAt) : instants.from,
    closed: closed && {
      to: isoText(closed.periodTo),
      knownAt: isoText(closed.knownAt),
      recordedSince: recordedAfter(closed.knownAt),
    },
  };
}

/** Recorded times are whole milliseconds, and each batch has its own. */
function recordedAfter(knownAt: Instant): string {
  return isoText(knownAt + 1);
}

/** The instant `ms` before the end of the period. */
export function beforeEnd({ asOf }: ReportParams, ms: number): string {
  return isoText(Date.parse(asOf) - ms);
}

/**
 * The instant `ms` before the judgement: what began earlier is overdue. A write of the last second
 * of the period that is still unknown a day later is overdue, so this is not the end of the period.
 */
export function overdueBefore({ judgedAt }: ReportParams, ms: number): string {
  return isoText(Date.parse(judgedAt) - ms);
}
