/**
 * Reconciliation reports, on request and by schedule. Every period has at most one scheduled
 * report; missed periods are caught up. Closed periods are in `periods/`.
 */
import type { Db, Tx } from '../db/connect.ts';
import { DAY_MS, type Instant } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import { jsonText } from '../kernel/json.ts';
import { type Anchor, parseAnchor } from '../ledger/ledger.ts';
import type { EffectSettings } from '../operations/operations.ts';
import type { Moment } from '../resources/moments.ts';
import type { Report } from '../resources/reports/content.ts';
import type {
  ReportFormat,
  ReportLine,
  ReportSummary,
  reportFile,
} from '../resources/reports/report.ts';
import type { Row } from '../resources/resource.ts';
import {
  type FileSettings,
  isDelivered,
  listFiles,
  type WrittenFiles,
  writeDueFiles,
} from './files/files.ts';
import {
  assertOwner,
  assertPeriod,
  keepReport,
  type MakingDeps,
  RECONCILIATION,
  readContent,
} from './make.ts';
import type { Limits, ShownSettings } from './params.ts';
import { findClosedReport, instantOf } from './periods/store.ts';
import {
  type LineFilter,
  type LineLimits,
  type LinePosition,
  linesOf,
  listLines,
} from './queries/lines.ts';
import { RENDERERS, readForRendering, type ShownAs } from './render/formats.ts';
import { listDue, type Schedule } from './schedule.ts';
import * as store from './store.ts';

export { explainWallet } from './explain.ts';
export type { BucketKeys } from './files/bucket.ts';
export { RECONCILIATION } from './make.ts';
export { makePeriods, type Periods } from './periods/periods.ts';
export {
  findWaitingPeriods,
  instantOf,
  listPeriods,
} from './periods/store.ts';
export type { LinePosition } from './queries/lines.ts';
export { findDays, type Schedule } from './schedule.ts';
export { listSummaries } from './store.ts';

export interface ReportSettings extends Limits, LineLimits, ShownSettings {
  /** Absent: reports are made on request only. */
  schedule?: Schedule | undefined;
  /** Absent: no files are written. */
  files?: FileSettings | undefined;
}

/** Defaults in milliseconds and rows. */
export const DEFAULT_LIMITS: Limits & LineLimits = {
  readLagMs: 2_000,
  quiescenceMs: 30_000,
  overdueMs: 900_000,
  staleMs: DAY_MS,
  listMax: 1_000,
  linesMax: 50_000,
  journalMax: 200_000,
};

interface LinePage {
  after?: LinePosition | undefined;
  limit: number;
}

export interface Reports {
  /**
   * Makes, stores and announces the reconciliation of a period; of a closed period it is the report
   * of its close.
   * @param input `requestedBy` is an owner
   * @throws Failure `invalid_request` for an empty period, or an owner named `schedule`
   */
  makeReconciliation(input: {
    from: Moment | Instant;
    /** Exclusive. */
    to: Moment | Instant;
    requestedBy: string;
  }): Promise<Report>;
  /** Makes due scheduled reports, a bounded number per pass, and none after the signal aborts. */
  runDue(now: Instant, signal?: AbortSignal): Promise<{ made: number; more: boolean }>;
  /** Newest first; `before` is the id of the last report of the previous page. */
  listReports(page: {
    before?: string | undefined;
    kind?: string | undefined;
    limit: number;
  }): Promise<ReportSummary[]>;
  /** @throws Failure `not_found` */
  getReport(id: string): Promise<Report>;
  /** @throws Failure `not_found`, `conflict` when it has too many lines for the format */
  renderReport(
    id: string,
    format: ReportFormat,
    shown?: Pick<ShownAs, 'bom'>,
  ): Promise<string | Uint8Array<ArrayBuffer>>;
  /**
   * The transactions behind the totals of a report, in the order in which they took effect. Those
   * of a kind and reason sum to its movements.
   * @throws Failure `not_found`
   */
  listLines(id: string, filter: LineFilter, page: LinePage): Promise<ReportLine[]>;
  /** The files of a report in the folder or bucket of the setting, written or due. */
  filesOf(id: string): Promise<Row<typeof reportFile>[]>;
  /** Writes the files that are due. */
  writeFiles(now: Instant, signal?: AbortSignal): Promise<WrittenFiles>;
}

/** Of what is read of the ledger for one request. */
const LINES_DEADLINE_MS = 60_000;

/** Scheduled reports per pass. */
const DUE_MAX = 10;

/** Installation setting from which the views of finance_v1 read the settings of the ledger. */
export const LEDGER_SETTING = 'ledger_settings';

/** Installation setting: age in milliseconds at which the view `coverage` counts a wallet stale. */
export const STALE_AFTER_SETTING = 'stale_after_ms';

/** Installation setting: the zone whose days the functions of finance_v1 mean by default. */
export const TIME_ZONE_SETTING = 'report_time_zone';

/** The heads of the hash chain in the newest reports, to compare the ledger with. */
export async function keptHeads(db: Db): Promise<Anchor[]> {
  const rows = await store.listChainHeads(db);
  return rows.flatMap(({ id, head }) => parseAnchor(head, `report ${id}`) ?? []);
}

export function ledgerSetting(settings: EffectSettings): string {
  return jsonText({
    fee_mode: settings.feeMode,
    fee_changes: settings.feeChanges,
    operators: Object.fromEntries(settings.operators),
    fees: settings.feesAddr,
    collection: settings.collectionAddr,
  });
}

/** @throws Failure `not_found` */
async function getReport(db: Db, id: string): Promise<Report> {
  const report = await store.findReport(db, id);
  if (!report) throw new Failure('not_found', `no report ${id}`);
  return report;
}

export function makeReports(deps: MakingDeps & { settings: ReportSettings }): Reports {
  const { db, reads, settings } = deps;
  const readOnly = <T>(work: (tx: Tx) => Promise<T>) =>
    reads.begin(
      async (tx) => {
        await store.setReadOnly(tx);
        return work(tx);
      },
      { snapshot: true, deadlineMs: LINES_DEADLINE_MS },
    );
  return {
    async makeReconciliation({ from, to, requestedBy }) {
      const { timeZone = 'UTC' } = settings;
      const atOf = async (moment: Moment | Instant) =>
        typeof moment === 'number' ? moment : instantOf(db, moment, timeZone);
      const period = { from: await atOf(from), to: await atOf(to) };
      assertPeriod(period);
      assertOwner(requestedBy);
      const closed = await findClosedReport(db, period);
      if (closed) return must(await store.findReport(db, closed), 'report of a period');
      const content = must(await readContent(deps, period), 'content');
      return db.begin((tx) => keepReport(deps, tx, content, period, requestedBy));
    },
    async runDue(now, signal) {
      if (!settings.schedule) return { made: 0, more: false };
      const due = await listDue(db, RECONCILIATION, settings.schedule, now, DUE_MAX);
      let made = 0;
      for (const period of due) {
        if (signal?.aborted) return { made, more: true };
        const mayMake = (tx: Tx) => store.lockSchedule(tx, RECONCILIATION);
        const content = await readContent(deps, period, mayMake);
        if (!content) return { made, more: false };
        await db.begin((tx) => keepReport(deps, tx, content, period, store.SCHEDULE));
        made += 1;
      }
      return { made, more: due.length === DUE_MAX };
    },
    listReports: (page) => store.listSummaries(db, page),
    filesOf: (id) => listFiles(db, id),
    async writeFiles(now, signal) {
      const { files } = settings;
      if (!files || !isDelivered(files)) return { written: [], failed: [] };
      return writeDueFiles(db, { ...files, shown: settings }, now, signal);
    },
    getReport: (id) => getReport(db, id),
    async renderReport(id, format, shown) {
      const report = await getReport(db, id);
      const { lines, closed } = await readOnly((tx) =>
        readForRendering(tx, report, format, settings),
      );
      return RENDERERS[format].render(report, lines, { ...settings, ...shown, closed });
    },
    async listLines(id, filter, page) {
      const report = await getReport(db, id);
      return readOnly((tx) => listLines(tx, linesOf(report), filter, page));
    },
  };
}
