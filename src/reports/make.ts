/**
 * Makes a report: its content is read in one read-only snapshot, then it is stored with the hash of
 * the content and announced in one commit. A closed period answers with the report of its close.
 */
import type { Reads } from '../db/access/replica.ts';
import type { Tx } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import { sameOwner } from '../kernel/addresses.ts';
import { isoText } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import { canonicalJson, sha256Hex } from '../kernel/json.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Reconciliation, Report } from '../resources/reports/content.ts';
import { type FileSettings, insertFiles, isDelivered, pathsOf } from './files/files.ts';
import type { Limits, ShownSettings } from './params.ts';
import { findClosedReport } from './periods/store.ts';
import { reconcile } from './reconcile.ts';
import type { Period } from './schedule.ts';
import * as store from './store.ts';

export const RECONCILIATION = 'reconciliation';
/** A million wallets take about a minute on an idle machine. */
const READ_DEADLINE_MS = 600_000;

export interface MakingDeps extends Pick<Context, 'db' | 'clock' | 'ids'> {
  /** Where the content is read. */
  reads: Reads;
  outbox: Outbox;
  settings: Limits & ShownSettings & { files?: FileSettings | undefined };
}

/** Reads in one read-only snapshot; undefined when `mayRead` is false. */
export function readContent(
  { reads, clock, settings }: MakingDeps,
  { from, to }: Period,
  mayRead: (tx: Tx) => Promise<boolean> = async () => true,
): Promise<Reconciliation | undefined> {
  return reads.begin(
    async (tx) => {
      await store.setReadOnly(tx);
      if (!(await mayRead(tx))) return undefined;
      const closed = await findClosedReport(tx, { from, to });
      if (closed) return must(await store.findReport(tx, closed), 'report of a period').content;
      const { organisation = null, timeZone = 'UTC' } = settings;
      const input = { from, to, now: clock.now(), limits: settings, organisation, timeZone };
      return reconcile(tx, input);
    },
    { snapshot: true, deadlineMs: READ_DEADLINE_MS },
  );
}

/**
 * Stores and announces a report; returns the stored one if the period already has a scheduled one.
 * @param requestedBy an owner, or `schedule`
 */
export async function keepReport(
  { clock, ids, outbox, settings }: Omit<MakingDeps, 'db' | 'reads'>,
  tx: Tx,
  content: Reconciliation,
  { from, to }: Period,
  requestedBy: string,
): Promise<Report> {
  const { known_at } = content.cut_off;
  const report: Report = {
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
    hash: sha256Hex(canonicalJson(content)),
    createdAt: clock.now(),
  };
  if (await store.insertReport(tx, report)) {
    const files = settings.files ?? { formats: [] };
    if (isDelivered(files)) await insertFiles(tx, report.id, files.formats, report.createdAt);
    await outbox.emit(tx, [completedEvent(report, pathsOf(files, report))]);
    return report;
  }
  const period = { kind: RECONCILIATION, from, to };
  return must(await store.findScheduled(tx, period), 'scheduled report');
}

/** @throws Failure `invalid_request` */
export function assertPeriod({ from, to }: Period): void {
  if (!(from < to)) throw new Failure('invalid_request', 'the period must end after it begins');
}

/** @throws Failure `invalid_request` */
export function assertOwner(owner: string): void {
  if (sameOwner(owner, store.SCHEDULE))
    throw new Failure('invalid_request', `the owner name ${store.SCHEDULE} is reserved`);
}

function completedEvent(report: Report, files: string[]) {
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
      files,
    },
  };
}
