/**
 * Records reported operations in batches, each in one transaction; few reports share one with those
 * of other requests. Reporting the same write again changes nothing. Reports are not verified with
 * the service; their evidence names the reporter.
 */

import { BOUNDS, groupCommit } from '../../db/access/group-commit.ts';
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import type { Context } from '../../db/context.ts';
import { addressKey, txHashKey } from '../../kernel/addresses.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import { sha256Hex } from '../../kernel/json.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { FOREIGN_ANSWER } from '../conclusion.ts';
import {
  accountOfWallet,
  type Effect,
  type EffectSettings,
  type RecordedEffects,
  recordedEffectsOf,
} from '../effects/effects.ts';
import { resolvedEvent } from '../events.ts';
import { lockNames, txNumberLock } from '../intake/locks.ts';
import type { Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';
import { applyTransitions, countStates, type TransitionDeps } from '../transitions.ts';
import {
  type BatchMatches,
  type NumberedReport,
  type Numbering,
  planReports,
  type Report,
  type Reporter,
  type ReportPlan,
  transactionKey,
  WINDOW_SLACK_MS,
} from './plan.ts';

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
   * @param within is done in the transaction that records these of them, by their index
   * @throws Failure or DatabaseError; repeating the reports is safe
   */
  report(
    reports: readonly Report[],
    by: Reporter,
    within?: (tx: Tx, results: ReadonlyMap<number, Reported>) => Promise<void>,
  ): Promise<Reported[]>;
  /**
   * Judges at most 500 reports as `report` would, and records nothing.
   * @param earlier reports of earlier batches that are recorded before these
   */
  check(reports: readonly Report[], by: Reporter, earlier?: readonly Report[]): Promise<Checked[]>;
}

export const REPORTS_MAX = 500;
/** Larger batches are commits of their own. */
const SHARED_MAX = 8;
/** A wallet's first observation certainly includes writes that are older. */
const OLD_MS = 3_600_000;
/** Attempts while concurrent reports insert the same writes. */
const PASSES_MAX = 4;

interface Deps extends TransitionDeps, Pick<Context, 'db' | 'clock' | 'ids'> {
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
  /** Called after each commit that recorded some. */
  onRecorded: () => void;
}

export function makeReportedOperations(deps: Deps): ReportedOperations {
  const commits = sharedCommits(deps);
  let appNo: bigint | undefined;

  /** Fills in the number of our own app, which never changes. */
  async function withAppNo(report: Report): Promise<Report | Failure> {
    if (report.txLogNo === null || report.txAppNo !== null) return report;
    appNo ??= deps.tokenAppNo?.() ?? (await findAppNo(deps.db));
    if (appNo !== undefined) return { ...report, txAppNo: appNo };
    const detail = 'tx_app_no: must be named until the service has named the number of our app';
    return new Failure('invalid_request', detail);
  }

  /** The reports with their index; the refused ones are set in `results`. */
  async function numbered<R>(
    reports: readonly Report[],
    by: Reporter,
    results: Map<number, R | { result: 'refused'; failure: Failure }>,
  ): Promise<NumberedReport[]> {
    const lines: NumberedReport[] = [];
    for (const [n, input] of reports.entries()) {
      const report = await withAppNo(input);
      if (report instanceof Failure) results.set(n, { result: 'refused', failure: report });
      else lines.push({ n, report, by });
    }
    return lines;
  }

  return {
    async report(reports, by, within) {
      requireBatch(reports);
      const results = new Map<number, Reported>();
      let remaining = await numbered(reports, by, results);
      const unnumbered = new Map(results);
      if (within && unnumbered.size > 0) await deps.db.begin((tx) => within(tx, unnumbered));
      for (let pass = 1; remaining.length > 0; pass++) {
        if (pass > PASSES_MAX)
          throw new Failure('database_unavailable', 'concurrent reports of the same writes; retry');
        const batch = remaining;
        const done = await (within || !mayShare(batch)
          ? recordBatch(deps, batch, within)
          : commits.add(batch));
        for (const [n, reported] of done) results.set(n, reported);
        remaining = remaining.filter(({ n }) => !done.has(n));
      }
      return reports.map((_, n) => must(results.get(n), 'result of a report'));
    },
    async check(reports, by, earlier = []) {
      requireBatch(reports);
      const results = new Map<number, Checked>();
      const batch = await numbered([...earlier, ...reports], by, results);
      const matches = await deps.db.begin((tx) => readMatches(tx, batch));
      const plan = planReports(batch, matches, deps.clock.now(), () => '');
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
      return reports.map((_, n) => must(results.get(earlier.length + n), 'result of a report'));
    },
  };
}

function requireBatch(reports: readonly Report[]): void {
  if (reports.length > REPORTS_MAX)
    throw new Failure('invalid_request', `at most ${REPORTS_MAX} reports at once`);
}

/** A report that names an operation waits for its lock, which others should not wait for. */
function mayShare(batch: readonly NumberedReport[]): boolean {
  return (
    batch.length <= SHARED_MAX && batch.every(({ report: { operationId } }) => operationId === null)
  );
}

type Results = Map<number, Reported>;

/** Records batches of requests together; returns what `recordBatch` would return for each. */
function sharedCommits(deps: Deps) {
  return groupCommit<readonly NumberedReport[], Results>(async (batches) => {
    const lines = batches.flat();
    const done = await recordBatch(
      deps,
      lines.map((line, n) => ({ ...line, n })),
    );
    const places = lines.keys();
    return batches.map(
      (batch) =>
        new Map(
          batch.flatMap(({ n }) => {
            const reported = done.get(must(places.next().value, 'place of a report'));
            return reported ? [[n, reported]] : [];
          }),
        ),
    );
  }, BOUNDS);
}

/**
 * Returns the results by index. A report without a result met a concurrent report of the same write
 * and has to be tried again.
 */
async function recordBatch(
  deps: Deps,
  batch: readonly NumberedReport[],
  within?: (tx: Tx, results: Results) => Promise<void>,
): Promise<Results> {
  return deps.db.begin(async (tx) => {
    const results = await recordIn(tx, deps, batch);
    await within?.(tx, results);
    return results;
  });
}

async function recordIn(tx: Tx, deps: Deps, batch: readonly NumberedReport[]): Promise<Results> {
  const at = deps.clock.now();
  const matches = await readMatches(tx, batch);
  const plan = planReports(batch, matches, at, () => deps.ids.next('op'));
  const results: Results = new Map();
  for (const { n, failure } of plan.refused) results.set(n, { result: 'refused', failure });
  for (const [n, operation] of await applyChanges(deps, tx, plan, at))
    results.set(n, { result: 'recorded', operation, isNew: false });
  const inserted = await insertNew(deps, tx, plan, at);
  for (const { n, operation } of inserted)
    results.set(n, { result: 'recorded', operation, isNew: true });
  const ids = new Set(inserted.map(({ operation }) => operation.id));
  const missed = new Set(plan.fresh.flatMap(({ operation: { id } }) => (ids.has(id) ? [] : id)));
  for (const { n, operation } of plan.known)
    if (!missed.has(operation.id)) results.set(n, { result: 'known', operation });
  if (inserted.length + plan.changed.length > 0) tx.afterCommit(deps.onRecorded);
  return results;
}

/** Reads the matching operations, after locks on the numbers, which an answer may add too. */
async function readMatches(tx: Tx, batch: readonly NumberedReport[]): Promise<BatchMatches> {
  const reports = batch.map(({ report }) => report);
  const numbers = reports.flatMap(({ txLogNo }) =>
    txLogNo === null ? [] : [txNumberLock(txLogNo)],
  );
  const anonymous = batch.filter(({ report }) => report.operationId === null && !report.distinct);
  const ids = reports.flatMap(({ operationId }) => operationId ?? []);
  // Pipelined into one round trip; each statement sees what was committed before it began.
  const [, named, sameNumber, alike] = await Promise.all([
    lockNames(tx, numbers),
    lockNamed(tx, ids),
    listSameNumber(tx, reports),
    listAlike(tx, anonymous),
  ]);
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
  const numbered = await fillNumbers(tx, plan.numberings, at);
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
async function insertNew(deps: Deps, tx: Tx, plan: ReportPlan, at: Instant) {
  if (plan.fresh.length === 0) return [];
  const operations = plan.fresh.map(({ operation }) => operation);
  const included = await deps.includedInOpenings(tx, operations, at - OLD_MS);
  const fresh = plan.fresh.map(({ operation, ...one }) => {
    const settled = { ...operation, state: 'settled' as const, inLedger: true, settledAt: at };
    return {
      ...one,
      ...recordedEffectsOf(operation, deps.effectSettings),
      operation: included.has(operation.id) ? settled : operation,
    };
  });
  const tokenWrites = operations.filter(({ amount }) => amount !== null);
  const addrs = tokenWrites.flatMap(({ fromAddr, toAddr }) => [fromAddr, toAddr]);
  const observed = [...new Set(addrs.filter((addr) => addr !== null))];
  // Pipelined into one round trip.
  const [inserted] = await Promise.all([insertReported(tx, fresh), deps.observe(tx, observed, at)]);
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
  return recorded;
}

/** The number of our own app, from the newest answer of the service that has one. */
export async function findAppNo(db: Queryable): Promise<bigint | undefined> {
  const rows = await db.sql<{ no: bigint }[]>`
    select o.tx_app_no as no from tallyhook.operations o
    where o.tx_app_no is not null and o.source = 'gateway' and not exists (
      select from tallyhook.transitions t
      where t.operation_id = o.id and t.cause = ${FOREIGN_ANSWER} offset 0)
    order by o.id desc limit 1`;
  return rows[0]?.no;
}

/** Operations with the number (of any app) or hash of a report, by its key; oldest first. */
export async function listSameNumber(
  tx: Tx,
  reports: readonly Report[],
): Promise<Map<string, Operation[]>> {
  const numbers = reports.flatMap(({ txLogNo }) => (txLogNo === null ? [] : [`${txLogNo}`]));
  const hashes = reports.flatMap(({ txHash }) => (txHash === null ? [] : txHashKey(txHash)));
  // `offset 0` keeps each lookup on its index, also with a plan made while the table was small.
  const rows = await tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.id = any(array(
      select found.id from unnest(${numbers}::numeric[]) as x(no)
      cross join lateral (
        select t.operation_id as id from tallyhook.transitions t
        where t.tx_log_no is not null and t.tx_log_no = x.no offset 0) found
      union
      select found.id from unnest(${hashes}::text[]) as x(hash)
      cross join lateral (
        select t.operation_id as id from tallyhook.transitions t
        where t.tx_hash is not null and lower(t.tx_hash) = x.hash offset 0) found))
    order by o.recorded_at, o.id`;
  const found = new Map<string, Operation[]>();
  for (const operation of rows) {
    const key = transactionKey(operation);
    found.set(key, [...(found.get(key) ?? []), operation]);
  }
  return found;
}

/** The operations that reports name, by id, locked. */
async function lockNamed(tx: Tx, ids: readonly string[]): Promise<Map<string, Operation>> {
  if (ids.length === 0) return new Map();
  const rows = await tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[]) order by o.id for update`;
  return new Map(rows.map((operation) => [operation.id, operation]));
}

const ALIKE_MAX = 10;

/**
 * For each report, by index, at most ten similar operations: equal in kind, parties and amount, not
 * certainly executed or without a number, and sent around that time.
 */
export async function listAlike(
  tx: Tx,
  reports: readonly { n: number; report: Report }[],
): Promise<Map<number, Operation[]>> {
  if (reports.length === 0) return new Map();
  const rows = reports.map(({ n, report: { kind, occurredAt, fields } }) => ({
    n,
    kind,
    from: addressKey(fields.fromAddr ?? ''),
    to: addressKey(fields.toAddr ?? ''),
    no: fields.operationNo,
    contract: fields.contractId,
    token: fields.tokenId,
    amount: fields.amount,
    earliest: isoText(occurredAt - WINDOW_SLACK_MS),
    latest: isoText(occurredAt + WINDOW_SLACK_MS),
  }));
  const accounts = [...new Set(rows.flatMap(({ from, to }) => [from, to]))].map(accountOfWallet);
  const contracts = [...new Set(rows.flatMap(({ contract }) => contract?.toString() ?? []))];
  const found = await tx.sql<(Operation & { n: number })[]>`
    with x as materialized (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, kind text, "from" text,
        "to" text, no numeric, contract numeric, token numeric, amount numeric,
        earliest timestamptz, latest timestamptz)
    ), open as materialized (
      select operation_id as id from tallyhook.operation_effects
      where unsettled and phase = 'open' and lower(account) = any(${accounts}::text[])
      union
      select id from tallyhook.open_operations
      where contract_id = any(${contracts}::numeric[]) and state in ('queued', 'sending', 'unknown')
      union
      select id from tallyhook.operations where unnumbered
    ), alike as (
      select x.n, o.id, row_number() over (partition by x.n order by o.recorded_at, o.id) as place
      from open join tallyhook.operations o on o.id = open.id
      join x on x.kind = o.kind and x."from" = coalesce(lower(o.from_addr), '')
        and x."to" = coalesce(lower(o.to_addr), '')
        and coalesce(x.amount, 0) = coalesce(o.amount, 0)
        and coalesce(x.no, -1) = coalesce(o.operation_no, -1)
        and coalesce(x.contract, -1) = coalesce(o.contract_id, -1)
        and (x.token = o.token_id or x.token is null or o.token_id is null)
        and x.latest >= coalesce(o.sent_at, o.recorded_at)
        and x.earliest <= coalesce(o.send_deadline_at, o.recorded_at)
      where o.state in ('sending', 'unknown', 'undecided', 'executed', 'settled')
    )
    select a.n, ${operationColumns(tx.sql)}
    from alike a join tallyhook.operations o on o.id = a.id
    where a.place <= ${ALIKE_MAX} order by a.n, a.place`;
  const alike = new Map<number, Operation[]>();
  for (const { n, ...row } of found) alike.set(n, [...(alike.get(n) ?? []), row]);
  return alike;
}

/** A reported operation to insert. */
interface Recording extends RecordedEffects {
  operation: Operation;
  keyId: string;
  body: string;
}

/**
 * Inserts reported operations with their transitions, effects and due postings. Returns the
 * inserted ids; a missing one was inserted by a concurrent report.
 */
async function insertReported(tx: Tx, recordings: readonly Recording[]): Promise<Set<string>> {
  if (recordings.length === 0) return new Set();
  const rows = recordings.map(({ operation: o, keyId, body, effects, feeMode }) => ({
    ...o,
    keyId,
    effects,
    feeMode,
    fingerprint: sha256Hex(body),
    body: Buffer.from(body).toString('base64'),
    recordedAt: isoText(o.recordedAt),
    effectiveAt: isoTextOrNull(o.effectiveAt),
    settledAt: isoTextOrNull(o.settledAt),
  }));
  const inserted = await tx.sql<{ id: string }[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, kind text, state text,
        owner text, "keyId" text, fingerprint text, reference text, body text, "fromAddr" text,
        "toAddr" text, "operationNo" numeric, "contractId" numeric, "tokenId" numeric,
        amount numeric, "feeAmount" numeric, "reasonType" text, "tokenUri" text, "metaData" text,
        "extraData" text, "txAppNo" numeric, "txLogNo" numeric, "txHash" text, evidence jsonb,
        "recordedAt" timestamptz, "effectiveAt" timestamptz, "effectiveBasis" text,
        "settledAt" timestamptz, "feeMode" text, effects jsonb, "inLedger" boolean)
    ), o as (
      insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint,
        key_held, reference, method, path, content_type, request_body, from_addr, to_addr,
        operation_no, contract_id, token_id, amount, fee_amount, reason_type, token_uri, meta_data,
        extra_data, tx_app_no, tx_log_no, tx_hash, evidence, recorded_at, effective_at,
        effective_basis, settled_at, fee_mode)
      select id, kind, state, 'report', owner, "keyId", fingerprint, false, reference, 'POST',
        '/api/operations', 'application/json', decode(body, 'base64'), "fromAddr", "toAddr",
        "operationNo", "contractId", "tokenId", amount, "feeAmount", "reasonType", "tokenUri",
        "metaData", "extraData", "txAppNo", "txLogNo", "txHash", evidence, "recordedAt",
        "effectiveAt", "effectiveBasis", "settledAt", "feeMode"
      from x order by id
      on conflict do nothing
      returning id
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence,
        tx_log_no, tx_hash)
      select o.id, s.from_state, s.to_state, x."recordedAt", s.cause, x.evidence,
        case s.n when 1 then x."txLogNo" end, case s.n when 1 then x."txHash" end
      from o join x on x.id = o.id
      cross join (values (1, null, 'executed', 'report'),
        (2, 'executed', 'settled', 'older than the openings of its wallets'))
        as s(n, from_state, to_state, cause)
      where s.n = 1 or x.state = 'settled'
      order by o.id, s.n
    ), w as (
      insert into tallyhook.open_operations (state, changed_at, id, recorded_at, contract_id)
      select x.state, x."recordedAt", o.id, x."recordedAt", x."contractId"
      from o join x on x.id = o.id where tallyhook.is_open(x.kind, x.state)
    ), e as (
      insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
      select x.id, e.line, e.effect ->> 'account', (e.effect ->> 'amount')::numeric, x.state
      from o join x on x.id = o.id
      cross join jsonb_array_elements(x.effects) with ordinality as e(effect, line)
    ), due as (
      insert into tallyhook.due_postings (operation_id, due_at)
      select x.id, x."recordedAt" from o join x on x.id = o.id where x."inLedger" order by x.id
    )
    select id from o`;
  return new Set(inserted.map((row) => row.id));
}

/** Adds numbers, with a transition that keeps the state. */
async function fillNumbers(
  tx: Tx,
  numberings: readonly Numbering[],
  at: Instant,
): Promise<Operation[]> {
  if (numberings.length === 0) return [];
  return tx.sql<Operation[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(numberings)}::jsonb) as x(id text,
        "txAppNo" numeric, "txLogNo" numeric, "txHash" text, "tokenId" numeric, evidence jsonb)
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence,
        tx_log_no, tx_hash)
      select o.id, o.state, o.state, ${isoText(at)}::timestamptz, 'report', x.evidence, x."txLogNo",
        x."txHash"
      from x join tallyhook.operations o on o.id = x.id order by o.id
    )
    update tallyhook.operations o set tx_app_no = x."txAppNo", tx_log_no = x."txLogNo",
      tx_hash = x."txHash", token_id = coalesce(x."tokenId", o.token_id),
      evidence = coalesce(o.evidence, '{}'::jsonb) || x.evidence, event_seq = o.event_seq + 1
    from x where o.id = x.id
    returning ${operationColumns(tx.sql)}`;
}
