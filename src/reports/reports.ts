/**
 * Reconciliation reports. A report is read in one read-only snapshot, then stored with the hash of
 * its content and announced in one commit. Every period has at most one scheduled report; missed
 * periods are caught up.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { canonicalJson, jsonText, sha256Hex } from '../kernel/json.ts';
import type { EffectSettings } from '../ledger/ledger.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { ReconciliationContent } from './content.ts';
import type { Limits } from './params.ts';
import { reconcile } from './reconcile.ts';
import { listDue, type Period, type Schedule } from './schedule.ts';
import * as store from './store.ts';

export type { ReconciliationContent } from './content.ts';
export { type Explanation, explainWallet } from './explain.ts';
export { csvCell, renderCsv } from './render/csv.ts';
export { renderHtml } from './render/html.ts';
export { renderJson } from './render/json.ts';
export { renderXlsx } from './render/xlsx.ts';
export type { Schedule } from './schedule.ts';
export type { Report, ReportSummary } from './store.ts';
export { listChainHeads, listSummaries } from './store.ts';

export interface ReportSettings extends Limits {
  /** Absent: reports are made on request only. */
  schedule?: Schedule | undefined;
}

/** Defaults in milliseconds and rows. */
export const DEFAULT_LIMITS: Limits = {
  readLagMs: 2_000,
  quiescenceMs: 30_000,
  overdueMs: 900_000,
  staleMs: 86_400_000,
  listMax: 1_000,
};

export interface Reports {
  /**
   * Makes, stores and announces the reconciliation of a period.
   * @param input `requestedBy` is an owner
   * @throws Failure `invalid_request` for an empty period, or an owner named `schedule`
   */
  makeReconciliation(input: Period & { requestedBy: string }): Promise<store.Report>;
  /** Makes due scheduled reports, a bounded number per pass, and none after the signal aborts. */
  runDue(now: Instant, signal?: AbortSignal): Promise<{ made: number; more: boolean }>;
  /** Newest first; `before` is the id of the last report of the previous page. */
  listReports(page: {
    before?: string | undefined;
    kind?: string | undefined;
    limit: number;
  }): Promise<store.ReportSummary[]>;
  /** @throws Failure `not_found` */
  getReport(id: string): Promise<store.Report>;
}

export const RECONCILIATION = 'reconciliation';
/** A million wallets take about a minute on an idle machine. */
const READ_DEADLINE_MS = 600_000;
/** Scheduled reports per pass. */
const DUE_MAX = 10;

/** Installation setting from which the views of finance_v1 read the settings of the ledger. */
export const LEDGER_SETTING = 'ledger_settings';

/** Installation setting: age in milliseconds at which the view `coverage` counts a wallet stale. */
export const STALE_AFTER_SETTING = 'stale_after_ms';

export function ledgerSetting(settings: EffectSettings): string {
  return jsonText({
    fee_mode: settings.feeMode,
    operators: Object.fromEntries(settings.operators),
    fees: settings.feesAddr,
    collection: settings.collectionAddr,
  });
}

function hashOf(content: ReconciliationContent): string {
  return sha256Hex(canonicalJson(content));
}

interface ReportsDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  outbox: Outbox;
  settings: ReportSettings;
}

export function makeReports(deps: ReportsDeps): Reports {
  const { db, settings } = deps;
  return {
    async makeReconciliation({ from, to, requestedBy }) {
      if (!(from < to)) throw new Failure('invalid_request', 'the period must end after it begins');
      if (requestedBy === store.SCHEDULE)
        throw new Failure('invalid_request', `the owner name ${store.SCHEDULE} is reserved`);
      const content = await read(deps, { from, to });
      return keep(deps, content, { from, to }, requestedBy);
    },
    async runDue(now, signal) {
      if (!settings.schedule) return { made: 0, more: false };
      const due = await listDue(db, RECONCILIATION, settings.schedule, now, DUE_MAX);
      let made = 0;
      for (const period of due) {
        if (signal?.aborted) return { made, more: true };
        const mayMake = (tx: Tx) => store.lockSchedule(tx, RECONCILIATION);
        const content = await readIf(deps, period, mayMake);
        if (!content) return { made, more: false };
        await keep(deps, content, period, store.SCHEDULE);
        made += 1;
      }
      return { made, more: due.length === DUE_MAX };
    },
    listReports: (page) => store.listSummaries(db, page),
    async getReport(id) {
      const report = await store.findReport(db, id);
      if (!report) throw new Failure('not_found', `no report ${id}`);
      return report;
    },
  };
}

async function read(deps: ReportsDeps, period: Period): Promise<ReconciliationContent> {
  return must(await readIf(deps, period, async () => true), 'content');
}

/** Reads in one read-only snapshot; undefined when `mayRead` is false. */
function readIf(
  { db, clock, settings: limits }: ReportsDeps,
  { from, to }: Period,
  mayRead: (tx: Tx) => Promise<boolean>,
): Promise<ReconciliationContent | undefined> {
  return db.begin(
    async (tx) => {
      await store.setReadOnly(tx);
      if (!(await mayRead(tx))) return undefined;
      return reconcile(tx, { from, to, now: clock.now(), limits });
    },
    { snapshot: true, deadlineMs: READ_DEADLINE_MS },
  );
}

/** Stores and announces a report in one commit; returns the stored one if it already exists. */
function keep(
  { db, clock, ids, outbox }: ReportsDeps,
  content: ReconciliationContent,
  { from, to }: Period,
  requestedBy: string,
): Promise<store.Report> {
  const { known_at } = content.cut_off;
  const report: store.Report = {
    id: ids.next('rep'),
    kind: RECONCILIATION,
    periodFrom: from,
    periodTo: to,
    knownAt: known_at === null ? from : Date.parse(known_at),
    requestedBy,
    verdict: content.verdict,
    breaks: content.breaks.total,
    provisional: content.provisional,
    content,
    hash: hashOf(content),
    createdAt: clock.now(),
  };
  return db.begin(async (tx) => {
    if (await store.insertReport(tx, report)) {
      await outbox.emit(tx, [completedEvent(report)]);
      return report;
    }
    const period = { kind: RECONCILIATION, from, to };
    return must(await store.findScheduled(tx, period), 'scheduled report');
  });
}

function completedEvent(report: store.Report) {
  const { id, kind, periodFrom, periodTo, verdict, breaks, provisional } = report;
  const { content, hash, createdAt } = report;
  return {
    type: 'report.completed' as const,
    subject: `report:${id}`,
    occurredAt: createdAt,
    last: true,
    data: {
      report_id: id,
      kind,
      period_from: isoText(periodFrom),
      period_to: isoText(periodTo),
      verdict,
      breaks,
      provisional,
      hash,
      chain_head: content.cut_off.chain_head,
      link: `/api/reports/${id}`,
    },
  };
}
