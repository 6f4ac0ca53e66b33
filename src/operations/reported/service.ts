/**
 * Records reported operations in batches, each in one transaction. Reporting the same write again
 * changes nothing. Reports are not verified with the service; their evidence names the reporter.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { type Effect, type EffectSettings, recordedEffectsOf } from '../effects/effects.ts';
import { resolvedEvent } from '../events.ts';
import { lockNames, txNumberLock } from '../intake/lock-store.ts';
import type { Operation } from '../operation.ts';
import { applyTransitions, countStates, type TransitionDeps } from '../transition-store.ts';
import {
  type BatchMatches,
  type NumberedReport,
  planReports,
  type Reporter,
  type ReportPlan,
} from './plan.ts';
import type { Report } from './rule.ts';
import * as store from './store.ts';

export type { Report } from './rule.ts';

/** The result of one report. */
export type Reported =
  /** A new operation, or one that the report resolved or numbered. */
  | { result: 'recorded'; operation: Operation; isNew: boolean }
  | { result: 'known'; operation: Operation }
  | { result: 'refused'; failure: Failure };

/** What recording one report would do; its effects are those that it adds to the known ones. */
export type Checked =
  | { result: 'recorded'; effects: readonly Effect[] }
  | { result: 'known'; operation: Operation }
  | { result: 'refused'; failure: Failure };

export interface ReportedOperations {
  /**
   * Records at most 500 reports; returns their results in order. A refused report has the failure
   * `conflict`, `matches_open_operation`, `not_found` or `invalid_request`.
   * @throws Failure or DatabaseError; repeating the reports is safe
   */
  report(reports: readonly Report[], by: Omit<Reporter, 'at'>): Promise<Reported[]>;
  /**
   * Judges at most 500 reports as `report` would, and records nothing. It knows the reports of this
   * batch and not those of earlier ones.
   */
  check(reports: readonly Report[], by: Omit<Reporter, 'at'>): Promise<Checked[]>;
}

export const REPORTS_MAX = 500;
/** A wallet's first observation certainly includes writes that are older. */
const OLD_MS = 3_600_000;
/** Attempts while concurrent reports insert the same writes. */
const PASSES_MAX = 4;

interface Deps extends TransitionDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  outbox: Outbox;
  effectSettings: EffectSettings;
  /** The number of the app that our token belongs to, once the service has named it. */
  tokenAppNo?: () => bigint | undefined;
  /** The ids of those operations that the openings of their wallets include. */
  includedInOpenings: (
    tx: Tx,
    operations: readonly Operation[],
    before: Instant,
  ) => Promise<Set<string>>;
  /** Adds wallets to the polled targets. */
  observe: (tx: Tx, addrs: readonly string[], now: Instant) => Promise<void>;
}

export function makeReportedOperations(deps: Deps): ReportedOperations {
  let appNo: bigint | undefined;

  /** Fills in the number of our own app, which never changes. */
  async function withAppNo(report: Report): Promise<Report | Failure> {
    if (report.txLogNo === null || report.txAppNo !== null) return report;
    appNo ??= deps.tokenAppNo?.() ?? (await store.findAppNo(deps.db));
    if (appNo !== undefined) return { ...report, txAppNo: appNo };
    const detail = 'tx_app_no: must be named until the service has named the number of our app';
    return new Failure('invalid_request', detail);
  }

  /** The reports with their index; the refused ones are set in `results`. */
  async function numbered<R>(
    reports: readonly Report[],
    results: Map<number, R | { result: 'refused'; failure: Failure }>,
  ): Promise<NumberedReport[]> {
    if (reports.length > REPORTS_MAX)
      throw new Failure('invalid_request', `at most ${REPORTS_MAX} reports at once`);
    const lines: NumberedReport[] = [];
    for (const [n, input] of reports.entries()) {
      const report = await withAppNo(input);
      if (report instanceof Failure) results.set(n, { result: 'refused', failure: report });
      else lines.push({ n, report });
    }
    return lines;
  }

  return {
    async report(reports, by) {
      const results = new Map<number, Reported>();
      let remaining = await numbered(reports, results);
      for (let pass = 1; remaining.length > 0; pass++) {
        if (pass > PASSES_MAX)
          throw new Failure('database_unavailable', 'concurrent reports of the same writes; retry');
        const reporter = { ...by, at: deps.clock.now() };
        const batch = remaining;
        const done = await deps.db.begin((tx) => recordBatch(deps, tx, batch, reporter));
        for (const [n, reported] of done) results.set(n, reported);
        remaining = remaining.filter(({ n }) => !done.has(n));
      }
      return reports.map((_, n) => must(results.get(n), 'result of a report'));
    },
    async check(reports, by) {
      const results = new Map<number, Checked>();
      const batch = await numbered(reports, results);
      const matches = await deps.db.begin((tx) => readMatches(tx, batch));
      const plan = planReports(batch, matches, { ...by, at: deps.clock.now() }, () => '');
      const effectsOf = (operation: Operation) =>
        recordedEffectsOf(operation, deps.effectSettings).effects.filter((e) => e.amount !== 0n);
      for (const { n, failure } of plan.refused) results.set(n, { result: 'refused', failure });
      for (const { n, operation } of plan.known) results.set(n, { result: 'known', operation });
      for (const { n, operation } of plan.fresh)
        results.set(n, { result: 'recorded', effects: effectsOf(operation) });
      const resolved = new Set(plan.moves.map(({ id }) => id));
      for (const { n, before } of plan.changed)
        results.set(n, {
          result: 'recorded',
          effects: resolved.has(before.id) ? effectsOf(before) : [],
        });
      return reports.map((_, n) => must(results.get(n), 'result of a report'));
    },
  };
}

/**
 * Returns the results by index. A report without a result met a concurrent report of the same write
 * and has to be tried again.
 */
async function recordBatch(
  deps: Deps,
  tx: Tx,
  batch: readonly NumberedReport[],
  by: Reporter,
): Promise<Map<number, Reported>> {
  const matches = await readMatches(tx, batch);
  const plan = planReports(batch, matches, by, () => deps.ids.next('op'));
  const results = new Map<number, Reported>();
  for (const { n, failure } of plan.refused) results.set(n, { result: 'refused', failure });
  for (const [n, operation] of await applyChanges(deps, tx, plan, by.at))
    results.set(n, { result: 'recorded', operation, isNew: false });
  const inserted = await insertNew(deps, tx, plan, by);
  for (const { n, operation } of inserted)
    results.set(n, { result: 'recorded', operation, isNew: true });
  const ids = new Set(inserted.map(({ operation }) => operation.id));
  const missed = new Set(plan.fresh.flatMap(({ operation: { id } }) => (ids.has(id) ? [] : id)));
  for (const { n, operation } of plan.known)
    if (!missed.has(operation.id)) results.set(n, { result: 'known', operation });
  return results;
}

/** Reads the matching operations, after locks on the numbers, which an answer may add too. */
async function readMatches(tx: Tx, batch: readonly NumberedReport[]): Promise<BatchMatches> {
  const reports = batch.map(({ report }) => report);
  const numbers = reports.flatMap(({ txLogNo }) =>
    txLogNo === null ? [] : [txNumberLock(txLogNo)],
  );
  await lockNames(tx, numbers);
  const named = await store.lockNamed(
    tx,
    reports.flatMap(({ operationId }) => operationId ?? []),
  );
  const sameNumber = await store.listSameNumber(tx, reports);
  const anonymous = batch.filter(({ report }) => report.operationId === null && !report.distinct);
  const alike = await store.listAlike(tx, anonymous);
  return { sameNumber, named, alike };
}

/** Resolves and numbers known operations, each with its event. */
async function applyChanges(
  deps: Deps,
  tx: Tx,
  plan: ReportPlan,
  at: Instant,
): Promise<[number, Operation][]> {
  if (plan.changed.length === 0) return [];
  const moved = plan.moves.length > 0 ? await applyTransitions(tx, plan.moves, deps) : [];
  const numbered = await store.fillNumbers(tx, plan.numberings, at);
  const after = new Map([...moved, ...numbered].map((operation) => [operation.id, operation]));
  const changes = plan.changed.map(({ n, before }) => {
    return { n, before, operation: must(after.get(before.id), 'operation that was locked') };
  });
  await deps.outbox.emit(
    tx,
    changes.map(({ before, operation }) => resolvedEvent(operation, before, at)),
  );
  return changes.map(({ n, operation }) => [n, operation]);
}

/**
 * Inserts new operations. Those that the openings of their wallets include need no observation to
 * confirm them and are settled at once.
 */
async function insertNew(deps: Deps, tx: Tx, plan: ReportPlan, by: Reporter) {
  if (plan.fresh.length === 0) return [];
  const operations = plan.fresh.map(({ operation }) => operation);
  const included = await deps.includedInOpenings(tx, operations, by.at - OLD_MS);
  const fresh = plan.fresh.map(({ n, operation, body }) => {
    const settled = { ...operation, state: 'settled' as const, inLedger: true, settledAt: by.at };
    return {
      n,
      body,
      keyId: by.keyId,
      ...recordedEffectsOf(operation, deps.effectSettings),
      operation: included.has(operation.id) ? settled : operation,
    };
  });
  const inserted = await store.insertReported(tx, fresh);
  const recorded = fresh.filter(({ operation }) => inserted.has(operation.id));
  const reached = recorded.flatMap(({ operation: { kind, state } }) =>
    state === 'executed'
      ? [{ kind, state }]
      : [
          { kind, state: 'executed' as const },
          { kind, state },
        ],
  );
  countStates(tx, deps.metrics, reached);
  const due = recorded.filter(({ operation }) => operation.inLedger);
  await deps.addDuePostings(
    tx,
    due.map(({ operation: { id } }) => {
      return { operationId: id, dueAt: by.at, quarantineReason: null };
    }),
  );
  const tokenWrites = recorded.filter(({ operation }) => operation.amount !== null);
  const addrs = tokenWrites.flatMap(({ operation: { fromAddr, toAddr } }) => [fromAddr, toAddr]);
  await deps.observe(tx, [...new Set(addrs.filter((addr) => addr !== null))], by.at);
  return recorded;
}
