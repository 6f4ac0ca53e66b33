/**
 * Read-only questions over everything. A reconciliation is read in one snapshot, stored as a row
 * with the hash of its content, and announced in the same commit. Scheduled ones exist once per
 * period, whoever makes them, and periods that were missed are caught up. Nothing here ever changes
 * what it reports on.
 */
import type { Db, Tx } from '../db/connect.ts';
import { must } from '../kernel/assert.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import { canonicalJson, jsonText, sha256Hex } from '../kernel/json.ts';
import type { EffectSettings } from '../operations/operations.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { ReconciliationContent } from './content.ts';
import type { Limits } from './params.ts';
import { reconcile } from './reconcile.ts';
import { listDue, type Period, type Schedule } from './schedule.ts';
import * as store from './store.ts';

export type { ReconciliationContent } from './content.ts';
export { BREAKS, type Finding, OPEN_ITEMS } from './findings.ts';
export type { Limits } from './params.ts';
export { renderCsv } from './render/csv.ts';
export { renderHtml } from './render/html.ts';
export { renderJson } from './render/json.ts';
export type { Schedule } from './schedule.ts';
export type { Report, ReportHead } from './store.ts';

export interface ReportSettings extends Limits {
  /** Absent: reports are made only when somebody asks. */
  schedule?: Schedule | undefined;
}

/** The bounds that the settings start from; milliseconds and lines. */
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
   * @param asked instants; `to` is excluded; `requestedBy` is the owner who asks
   * @throws Failure `invalid_request` when the period is empty or the name is the schedule's own
   */
  makeReconciliation(asked: Period & { requestedBy: string }): Promise<store.Report>;
  /** Makes what the schedule owes, a bounded number per pass. Answers how many it made. */
  runDue(now: Instant): Promise<{ made: number; more: boolean }>;
  /** Newest first, without contents; continue with `before`, the id of the last one. */
  listReports(page: {
    before?: string | undefined;
    kind?: string | undefined;
    limit: number;
  }): Promise<store.ReportHead[]>;
  /** @throws Failure `not_found` */
  getReport(id: string): Promise<store.Report>;
}

const RECONCILIATION = 'reconciliation';
/** A million wallets take a minute on a quiet machine; this is the end of patience. */
const READ_DEADLINE_MS = 600_000;
/** Scheduled reports of one pass at most. */
const DUE_MAX = 10;

/** The fact of the installation under which the views of finance_v1 find the books' settings. */
export const BOOKS_FACT = 'books';

/** The fact that says after how many milliseconds the view `coverage` calls a wallet stale. */
export const STALE_AFTER_FACT = 'stale_after_ms';

/** The value of `books`: how fees are read, and which wallets stand behind which accounts. */
export function booksFact(books: EffectSettings): string {
  return jsonText({
    fee_mode: books.feeMode,
    operators: Object.fromEntries(books.operators),
    fees: books.feesAddr,
    collection: books.collectionAddr,
  });
}

/** True when the content is the one that was hashed. */
export function isIntact(report: Pick<store.Report, 'content' | 'hash'>): boolean {
  return hashOf(report.content) === report.hash;
}

function hashOf(content: ReconciliationContent): string {
  return sha256Hex(canonicalJson(content));
}

interface Given {
  db: Db;
  clock: Clock;
  ids: Ids;
  outbox: Outbox;
  settings: ReportSettings;
}

/** The reports of one daemon. */
export function makeReports(given: Given): Reports {
  const { db, settings } = given;
  return {
    async makeReconciliation({ from, to, requestedBy }) {
      if (!(from < to)) throw new Failure('invalid_request', 'the period must end after it begins');
      if (requestedBy === store.SCHEDULE)
        throw new Failure('invalid_request', `nobody may be called ${store.SCHEDULE}`);
      const content = await read(given, { from, to });
      return keep(given, content, { from, to }, requestedBy);
    },
    async runDue(now) {
      if (!settings.schedule) return { made: 0, more: false };
      const due = await listDue(db, RECONCILIATION, settings.schedule, now, DUE_MAX);
      let made = 0;
      for (const period of due) {
        const mayMake = (tx: Tx) => store.lockSchedule(tx, RECONCILIATION);
        const content = await readIf(given, period, mayMake);
        if (!content) return { made, more: false };
        await keep(given, content, period, store.SCHEDULE);
        made += 1;
      }
      return { made, more: due.length === DUE_MAX };
    },
    listReports: (page) => store.listHeads(db, page),
    async getReport(id) {
      const report = await store.findReport(db, id);
      if (!report) throw new Failure('not_found', `no report ${id}`);
      return report;
    },
  };
}

async function read(given: Given, period: Period): Promise<ReconciliationContent> {
  return must(await readIf(given, period, async () => true), 'content');
}

/** Reads in one snapshot that cannot write; undefined when `mayRead` says no. */
function readIf(
  { db, clock, settings: limits }: Given,
  { from, to }: Period,
  mayRead: (tx: Tx) => Promise<boolean>,
): Promise<ReconciliationContent | undefined> {
  return db.begin(
    async (tx) => {
      await store.onlyRead(tx);
      if (!(await mayRead(tx))) return undefined;
      return reconcile(tx, { from, to, now: clock.now(), limits });
    },
    { snapshot: true, deadlineMs: READ_DEADLINE_MS },
  );
}

/** Stores and announces in one commit; answers the report that stands. */
function keep(
  { db, clock, ids, outbox }: Given,
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
    return must(await store.findScheduled(tx, period), 'report of the schedule');
  });
}

function completedEvent(report: store.Report) {
  const { id, kind, periodFrom, periodTo, verdict, breaks, hash, createdAt } = report;
  return {
    type: 'report.completed' as const,
    subject: `report:${id}`,
    occurredAt: createdAt,
    data: {
      report_id: id,
      kind,
      period_from: isoText(periodFrom),
      period_to: isoText(periodTo),
      verdict,
      breaks,
      hash,
      link: `/api/reports/${id}`,
    },
  };
}
