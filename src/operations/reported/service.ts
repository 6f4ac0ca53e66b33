/**
 * Reports of writes that were made elsewhere, recorded in batches: each batch is one transaction,
 * in which every report is judged beside what is known and beside its neighbours. Repeating a batch
 * is harmless. Nothing here asks the service: a report is what somebody says, and its evidence
 * names who.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { must } from '../../kernel/assert.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { type EffectSettings, effectsOrNone } from '../effects.ts';
import { resolvedEvent } from '../events.ts';
import { lockNames, txNumberLock } from '../intake/lock-store.ts';
import type { Operation } from '../operation.ts';
import { type AddDuePostings, applyTransitions } from '../transition-store.ts';
import {
  type BatchMatches,
  type NumberedReport,
  planReports,
  type Reporter,
  type ReportPlan,
} from './plan.ts';
import type { Report } from './rule.ts';
import * as elsewhere from './store.ts';

export type { Report } from './rule.ts';

/** What became of one report. */
export type Reported =
  /** A new operation, or one of ours that the report resolved or gave its number. */
  | { result: 'recorded'; operation: Operation; isNew: boolean }
  | { result: 'known'; operation: Operation }
  | { result: 'refused'; failure: Failure };

export interface ReportedOperations {
  /**
   * Records at most 500 reports; answers what became of each, in their order. A refused one says
   * why: `conflict`, `matches_open_operation`, `not_found`, `invalid_request`.
   * @throws Failure or DatabaseError when nothing of it was recorded
   */
  report(reports: readonly Report[], by: { owner: string; keyId: string }): Promise<Reported[]>;
}

/** What reports need of later stages, inside their transaction. */
export interface ReportHelp {
  /** Of these operations, the ids of those that the openings of their wallets hold. */
  includedInOpenings: (
    tx: Tx,
    operations: readonly Operation[],
    before: Instant,
  ) => Promise<Set<string>>;
  /** Puts wallets under observation. */
  observe: (tx: Tx, addrs: readonly string[], now: Instant) => Promise<void>;
}

export const REPORTS_MAX = 500;
/** What is older will be in the first observation at a wallet that was never polled. */
const OLD_MS = 3_600_000;
/** Times that a batch is tried beside somebody who reports the same. */
const PASSES_MAX = 4;

interface Deps extends ReportHelp {
  db: Db;
  clock: Clock;
  ids: Ids;
  outbox: Outbox;
  effectSettings: EffectSettings;
  addDuePostings: AddDuePostings;
}

/** Reports from elsewhere, of one daemon. */
export function makeReportedOperations(parts: Deps): ReportedOperations {
  let appNo: bigint | undefined;

  /** Our own app's number never changes, so it is looked for only until it is known. */
  async function complete(report: Report): Promise<Report | Failure> {
    if (report.txLogNo === null || report.txAppNo !== null) return report;
    appNo ??= await elsewhere.findAppNo(parts.db);
    if (appNo !== undefined) return { ...report, txAppNo: appNo };
    const detail = 'tx_app_no: must be named until the service has answered a write of ours';
    return new Failure('invalid_request', detail);
  }

  return {
    async report(reports, by) {
      if (reports.length > REPORTS_MAX)
        throw new Failure('invalid_request', `at most ${REPORTS_MAX} reports at once`);
      const results = new Map<number, Reported>();
      let lines: NumberedReport[] = [];
      for (const [n, given] of reports.entries()) {
        const report = await complete(given);
        if (report instanceof Failure) results.set(n, { result: 'refused', failure: report });
        else lines.push({ n, report });
      }
      for (let pass = 1; lines.length > 0; pass++) {
        if (pass > PASSES_MAX)
          throw new Failure('database_unavailable', 'the same is being reported again and again');
        const reporter = { ...by, at: parts.clock.now() };
        const some = lines;
        const done = await parts.db.begin((tx) => recordBatch(parts, tx, some, reporter));
        for (const [n, reported] of done) results.set(n, reported);
        lines = lines.filter(({ n }) => !done.has(n));
      }
      return reports.map((_, n) => must(results.get(n), 'result of a report'));
    },
  };
}

/**
 * One batch in one transaction. Answers what became of the reports; a missing one met a report of
 * the same write by somebody else, and is to be judged again.
 */
async function recordBatch(
  parts: Deps,
  tx: Tx,
  lines: readonly NumberedReport[],
  by: Reporter,
): Promise<Map<number, Reported>> {
  const beside = await readBeside(tx, lines);
  const plan = planReports(lines, beside, by, () => parts.ids.next('op'));
  const results = new Map<number, Reported>();
  for (const { n, failure } of plan.refused) results.set(n, { result: 'refused', failure });
  for (const [n, operation] of await change(parts, tx, plan, by.at))
    results.set(n, { result: 'recorded', operation, isNew: false });
  const inserted = await insert(parts, tx, plan, by);
  for (const { n, operation } of inserted)
    results.set(n, { result: 'recorded', operation, isNew: true });
  const ids = new Set(inserted.map(({ operation }) => operation.id));
  const missed = new Set(plan.fresh.flatMap(({ operation: { id } }) => (ids.has(id) ? [] : id)));
  for (const { n, operation } of plan.known)
    if (!missed.has(operation.id)) results.set(n, { result: 'known', operation });
  return results;
}

/** What is known beside the batch. The numbers are locked first: an answer may bring one too. */
async function readBeside(tx: Tx, lines: readonly NumberedReport[]): Promise<BatchMatches> {
  const reports = lines.map(({ report }) => report);
  const names = reports.flatMap(({ txAppNo, txLogNo }) =>
    txAppNo === null || txLogNo === null ? [] : [txNumberLock(txAppNo, txLogNo)],
  );
  await lockNames(tx, names);
  const named = await elsewhere.lockNamed(
    tx,
    reports.flatMap(({ operationId }) => operationId ?? []),
  );
  const sameNumber = await elsewhere.listSameNumber(tx, reports);
  const asking = lines.filter(({ report }) => report.operationId === null && !report.distinct);
  const alike = await elsewhere.listAlike(tx, asking);
  return { sameNumber, named, alike };
}

/** Resolves and numbers operations of ours, each with its event. */
async function change(
  { outbox, addDuePostings }: Deps,
  tx: Tx,
  plan: ReportPlan,
  at: Instant,
): Promise<[number, Operation][]> {
  if (plan.changed.length === 0) return [];
  const moved = plan.moves.length > 0 ? await applyTransitions(tx, plan.moves, addDuePostings) : [];
  const numbered = await elsewhere.fillNumbers(tx, plan.numberings, at);
  const after = new Map([...moved, ...numbered].map((operation) => [operation.id, operation]));
  const changes = plan.changed.map(({ n, before }) => {
    return { n, before, operation: must(after.get(before.id), 'operation that was locked') };
  });
  await outbox.emit(
    tx,
    changes.map(({ before, operation }) => resolvedEvent(operation, before, at)),
  );
  return changes.map(({ n, operation }) => [n, operation]);
}

/**
 * Records new operations. What the openings of its wallets hold needs no observation to confirm it
 * and is
 * settled at once; everything else settles as our own writes do.
 */
async function insert(parts: Deps, tx: Tx, plan: ReportPlan, by: Reporter) {
  if (plan.fresh.length === 0) return [];
  const operations = plan.fresh.map(({ operation }) => operation);
  const absorbed = await parts.includedInOpenings(tx, operations, by.at - OLD_MS);
  const fresh = plan.fresh.map(({ n, operation, body }) => {
    const settled = { ...operation, state: 'settled' as const, inLedger: true, settledAt: by.at };
    return {
      n,
      body,
      keyId: by.keyId,
      effects: effectsOrNone(operation, parts.effectSettings),
      operation: absorbed.has(operation.id) ? settled : operation,
    };
  });
  const inserted = await elsewhere.insertReported(tx, fresh);
  const standing = fresh.filter(({ operation }) => inserted.has(operation.id));
  const due = standing.filter(({ operation }) => operation.inLedger);
  await parts.addDuePostings(
    tx,
    due.map(({ operation: { id } }) => {
      return { operationId: id, dueAt: by.at, quarantineReason: null };
    }),
  );
  const wallets = standing.filter(({ operation }) => operation.amount !== null);
  const addrs = wallets.flatMap(({ operation: { fromAddr, toAddr } }) => [fromAddr, toAddr]);
  await parts.observe(tx, [...new Set(addrs.filter((addr) => addr !== null))], by.at);
  return standing;
}
