/** What waits and what is open, in all stages, at a bounded cost; read in one snapshot. */
import type { Db, Tx } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { countUnposted } from '../ledger/ledger.ts';
import { countBacklog } from '../observer/observer.ts';
import { countOpen } from '../operations/operations.ts';
import { countUnnumbered } from '../outbox/outbox.ts';
import {
  countEnded,
  countOpenDrifts,
  countQuarantined,
  countStaleWallets,
  countVanished,
  type OpenDrifts,
} from '../reconciler/reconciler.ts';
import { COUNT_MAX, type Stage } from '../resources/admin/status.ts';
import type { QuarantineKind } from '../resources/operations/quarantine.ts';
import { countPending } from '../webhooks/webhooks.ts';

/** How far back ended drifts count for their median: 30 days. */
export const ENDED_MS = 30 * 86_400_000;

export interface Counts {
  /** Rows that wait per stage, and since when the oldest does. */
  stages: { stage: Stage; waiting: number; since: Instant | null }[];
  /** Operations by state that is not final, and when the oldest was recorded. */
  operations: { state: string; count: number; oldestAt: Instant | null }[];
  drifts: OpenDrifts;
  /** Median time from suspicion to end of the drifts that ended in the last 30 days, in s. */
  driftMedianS: number | null;
  quarantined: Record<QuarantineKind, number>;
  staleWallets: number;
  vanished: { count: number; oldestAt: Instant | null };
}

/** @param staleAfterMs age at which the newest observation of a wallet is stale */
export function readCounts(db: Db, now: Instant, staleAfterMs: number): Promise<Counts> {
  return db.begin((tx) => countIn(tx, now, staleAfterMs), { snapshot: true });
}

/** As `readCounts`, inside the caller's snapshot; the statements are pipelined. */
export async function countIn(tx: Tx, now: Instant, staleAfterMs: number): Promise<Counts> {
  const [operations, drifts, ended, quarantined, staleWallets, vanished, ...backlogs] =
    await Promise.all([
      countOpen(tx, COUNT_MAX),
      countOpenDrifts(tx, COUNT_MAX),
      countEnded(tx, now - ENDED_MS),
      countQuarantined(tx, COUNT_MAX),
      countStaleWallets(tx, now - staleAfterMs, COUNT_MAX),
      countVanished(tx, COUNT_MAX),
      countUnposted(tx, COUNT_MAX),
      countBacklog(tx, now, COUNT_MAX),
      countUnnumbered(tx, COUNT_MAX),
      countPending(tx, COUNT_MAX),
    ]);
  const [ledger, observed, outbox, webhooks] = backlogs;
  const { due, dueSince, unprocessed, unprocessedSince } = observed;
  const stages = [
    { stage: 'ledger' as const, ...ledger },
    { stage: 'observer' as const, waiting: due, since: dueSince },
    { stage: 'reconciler' as const, waiting: unprocessed, since: unprocessedSince },
    { stage: 'outbox' as const, ...outbox },
    { stage: 'webhooks' as const, ...webhooks },
  ];
  const { medianS: driftMedianS } = ended;
  return { stages, operations, drifts, driftMedianS, quarantined, staleWallets, vanished };
}
