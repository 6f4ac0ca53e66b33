/** Observations: recording them, and what the reconciler has to process. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { ChangeRate } from './schedule/change-rate.ts';
import type { observations } from './tables.ts';

type Row = typeof observations.$inferSelect;

export type ObservationRow = Pick<
  Row,
  'id' | 'target' | 'kind' | 'startedAt' | 'endedAt' | 'result' | 'cause' | 'record'
>;

/** What earlier polls of a target have shown. */
export interface Known extends ChangeRate {
  /** When the last conclusive one began. */
  lastStartedAt: Instant | null;
}

/** What follows from a poll for its target. */
interface Lesson {
  nextPollAt: Instant;
  /** Null keeps what is known. */
  rate: ChangeRate | null;
}

export interface PollPlan {
  /**
   * If the poll shows a change that is not explained, and if not. A change of a pending target
   * counts as explained, by the open operation for which it is polled.
   */
  changed: Lesson;
  same: Lesson;
  /** A poll that shows nothing new is processed if the last one processed is so old. */
  processAfterMs: number;
}

/** The plan of a poll that is always processed; the next poll is at `nextPollAt`. */
export function plannedAt(nextPollAt: Instant): PollPlan {
  const lesson = { nextPollAt, rate: null };
  return { changed: lesson, same: lesson, processAfterMs: 0 };
}

/**
 * Records the result of a poll and schedules the next one. A conclusive result that equals the one
 * before it extends its series, else it begins a new one. It replaces what the reconciler has not
 * processed of this target; if the target is steady and was processed lately, a result that shows
 * nothing new does not. A result older than the newest one is ignored, and of a series of
 * inconclusive polls the first is kept. A single statement. Returns whether the reconciler has to
 * process it.
 */
export async function recordObservation(
  db: Queryable,
  observation: ObservationRow,
  plan: PollPlan,
): Promise<boolean> {
  if (observation.result !== 'inconclusive') return recordConclusive(db, observation, plan);
  await recordInconclusive(db, observation, plan.same.nextPollAt);
  return false;
}

async function recordInconclusive(
  { sql }: Queryable,
  { id, target, kind, startedAt, endedAt, cause }: ObservationRow,
  nextPollAt: Instant,
): Promise<void> {
  await sql`
    with failed as (
      update tallyhook.targets set lease_until = null, next_poll_at = ${isoText(nextPollAt)},
        failures = failures + 1, refused_at = case when ${cause === 'unconfirmed'}
          then coalesce(refused_at, ${isoText(startedAt)}::timestamptz) else refused_at end
      where name = ${target} returning failures
    )
    insert into tallyhook.observations (id, target, kind, started_at, first_ended_at,
      last_started_at, ended_at, result, cause)
    select ${id}, ${target}, ${kind}, ${isoText(startedAt)}::timestamptz,
      ${isoText(endedAt)}::timestamptz, ${isoText(startedAt)}::timestamptz,
      ${isoText(endedAt)}::timestamptz, 'inconclusive', ${cause}
    from failed where failures = 1`;
}

async function recordConclusive(
  { sql }: Queryable,
  { id, target, kind, startedAt, endedAt, result, cause, record }: ObservationRow,
  { changed, same, processAfterMs }: PollPlan,
): Promise<boolean> {
  const [started, ended] = [isoText(startedAt), isoText(endedAt)];
  const json = asJson(record);
  const rows = await sql<{ due: boolean }[]>`
    with before as (
      select name, observation_id, observation_started_at, pending,
        coalesce(process_again_at <= ${started}, true) as process_again,
        coalesce(last_result = ${result} and last_record is not distinct from ${json}::jsonb
          and kind <> 'scan', false) as same
      from tallyhook.targets
      where name = ${target} and (last_started_at is null or last_started_at < ${started})
      for update
    ), extended as (
      update tallyhook.observations o
      set last_started_at = ${started}, ended_at = ${ended}
      from before b
      where b.same and o.started_at = b.observation_started_at and o.id = b.observation_id
      returning o.id, o.started_at
    ), begun as (
      insert into tallyhook.observations (id, target, kind, started_at, first_ended_at,
        last_started_at, ended_at, result, cause, record)
      select ${id}, ${target}, ${kind}, ${started}::timestamptz, ${ended}::timestamptz,
        ${started}::timestamptz, ${ended}::timestamptz, ${result}, ${cause}, ${json}::jsonb
      from before b where not exists (select from extended)
      returning id, started_at
    ), kept as (
      select id, started_at from extended union all select id, started_at from begun
    ), due as (
      insert into tallyhook.unprocessed_observations as u (target, kind, observation_id,
        unchanged_since, started_at, ended_at, result, record, process_at)
      select ${target}, ${kind}, k.id, k.started_at, ${started}::timestamptz,
        ${ended}::timestamptz, ${result}, ${json}::jsonb, ${ended}::timestamptz
      from kept k cross join before b where not b.same or b.pending or b.process_again
      on conflict (target) do update set observation_id = excluded.observation_id,
        unchanged_since = excluded.unchanged_since, started_at = excluded.started_at,
        ended_at = excluded.ended_at, result = excluded.result, record = excluded.record,
        -- It keeps its place, however often it is polled; what failed is due when it has changed.
        process_at = case when u.observation_id = excluded.observation_id or u.failures = 0
          then u.process_at else excluded.process_at end,
        failures = case when u.observation_id = excluded.observation_id then u.failures else 0 end,
        problem = case when u.observation_id = excluded.observation_id then u.problem end
      returning target
    ), learned (same, next_poll_at, changes, seconds) as (
      values ${lessonRow(sql, true, same)}, ${lessonRow(sql, false, changed)}
    )
    update tallyhook.targets t set lease_until = null, next_poll_at = l.next_poll_at,
      pending = false, failures = 0,
      refused_at = ${result === 'absent' ? started : null}::timestamptz,
      last_result = ${result}, last_record = ${json}::jsonb,
      last_started_at = ${started}, observation_id = k.id, observation_started_at = k.started_at,
      changes = coalesce(l.changes, t.changes),
      changes_over_s = coalesce(l.seconds, t.changes_over_s),
      process_again_at = case when exists (select from due)
        then ${isoText(startedAt + processAfterMs)}::timestamptz else t.process_again_at end
    from kept k cross join before b join learned l on l.same = (b.same or b.pending)
    where t.name = ${target}
    returning exists (select from due) as due`;
  return rows[0]?.due ?? false;
}

function lessonRow(sql: Sql, isSame: boolean, { nextPollAt, rate }: Lesson) {
  const { changes = null, seconds = null } = rate ?? {};
  return sql`(${isSame}::boolean, ${isoText(nextPollAt)}::timestamptz, ${changes}::float8,
    ${seconds}::float8)`;
}

/** What is known of a target, if a passive observation of it is worth recording. */
export async function findIfNeeded(
  db: Queryable,
  { target, startedAt, record }: Pick<ObservationRow, 'target' | 'startedAt' | 'record'>,
  gapMs: { pending: number; steady: number },
): Promise<Known | undefined> {
  const rows = await db.sql<Known[]>`
    select changes, changes_over_s as seconds, last_started_at
    from tallyhook.targets
    where name = ${target} and (last_started_at is null or last_started_at < ${isoText(startedAt)}
      and (last_record is distinct from ${asJson(record)}::jsonb or last_started_at <
        case when pending then ${isoText(startedAt - gapMs.pending)}::timestamptz
          else ${isoText(startedAt - gapMs.steady)}::timestamptz end))`;
  return rows[0];
}

/** With the start and the end of the last of a series of polls with the same result. */
export interface StoredObservation extends ObservationRow {
  kind: 'wallet' | 'token' | 'scan';
  /** Start and end of the first of them. */
  unchangedSince: Instant;
  firstEndedAt: Instant;
}

/** A conclusive observation that the reconciler has to process. */
export type UnprocessedObservation = Omit<StoredObservation, 'cause' | 'firstEndedAt'> & {
  failures: number;
};

/** An observation is due to be processed. */
export function hasUnprocessed(sql: Sql, now: Instant) {
  return sql`exists (select process_at from tallyhook.unprocessed_observations
    where problem is null and process_at <= ${isoText(now)} order by process_at limit 1)`;
}

/**
 * Observations that are due to be processed, oldest first: so many of those that never failed, and
 * of those that did.
 */
export async function listUnprocessed(
  { sql }: Queryable,
  now: Instant,
  limits: { fresh: number; failed: number },
): Promise<{ fresh: UnprocessedObservation[]; failed: UnprocessedObservation[] }> {
  const columns = sql`target, kind, unchanged_since, started_at, ended_at, result, record,
    failures`;
  const due = (failures: ReturnType<Sql>, limit: number) => sql`(
    select observation_id as id, ${columns}, process_at
    from tallyhook.unprocessed_observations
    where problem is null and process_at <= ${isoText(now)} and ${failures}
    order by process_at, target limit ${limit})`;
  const rows = await sql<UnprocessedObservation[]>`
    select id, ${columns} from (${due(sql`failures = 0`, limits.fresh)}
      union all ${due(sql`failures > 0`, limits.failed)}) u
    order by process_at, target`;
  const [fresh, failed] = [
    rows.filter(({ failures }) => failures === 0),
    rows.filter(({ failures }) => failures > 0),
  ];
  return { fresh, failed };
}

/**
 * Deletes these of what has to be processed, as a part of a statement that returns their targets.
 * Absent are those that a newer observation has replaced, or that are processed already.
 */
export function processedOf(
  sql: Sql,
  observations: readonly Pick<UnprocessedObservation, 'target' | 'startedAt'>[],
) {
  const targets = observations.map(({ target }) => target);
  const startedAt = observations.map((one) => isoText(one.startedAt));
  return sql`delete from tallyhook.unprocessed_observations u
    using unnest(${targets}::text[], ${startedAt}::timestamptz[]) as p(target, started_at)
    where u.target = p.target and u.started_at = p.started_at returning u.target`;
}

/**
 * Processing failed: it is tried again at `processAt`, or quarantined then with the problem. One
 * that has replaced it is left as it is.
 */
export async function deferObservation(
  db: Queryable,
  { target, id }: Pick<UnprocessedObservation, 'target' | 'id'>,
  { processAt, problem }: { processAt: Instant; problem: string | null },
): Promise<void> {
  await db.sql`
    update tallyhook.unprocessed_observations
    set failures = failures + 1, process_at = ${isoText(processAt)}, problem = ${problem}
    where target = ${target} and observation_id = ${id}`;
}

/**
 * Makes a quarantined observation due again. Returns why it was quarantined; undefined if it is
 * not.
 */
export async function releaseObservation(
  tx: Tx,
  target: string,
  at: Instant,
): Promise<string | undefined> {
  const rows = await tx.sql<{ problem: string }[]>`
    update tallyhook.unprocessed_observations u
    set problem = null, failures = 0, process_at = ${isoText(at)}
    from (select target, problem from tallyhook.unprocessed_observations
      where target = ${target} and problem is not null for update) q
    where u.target = q.target returning q.problem`;
  return rows[0]?.problem;
}

function observationColumns(sql: Sql) {
  return sql`id, target, kind, started_at as "unchangedSince", first_ended_at,
    last_started_at as "startedAt", ended_at, result, cause, record`;
}

/** The newest observations of a target, newest first. */
export async function listObservations(
  db: Queryable,
  target: string,
  limit: number,
): Promise<StoredObservation[]> {
  return db.sql<StoredObservation[]>`
    select ${observationColumns(db.sql)} from tallyhook.observations o
    where target = ${target} order by o.started_at desc limit ${limit}`;
}

/** The newest complete scan of a contract that began at `since` or later. */
export async function newestScan(
  db: Queryable,
  contractId: bigint,
  since: Instant,
): Promise<StoredObservation | undefined> {
  const rows = await db.sql<StoredObservation[]>`
    select ${observationColumns(db.sql)} from tallyhook.observations o
    where kind = 'scan' and result = 'seen' and target like ${`scan:${contractId}:%`}
      and o.started_at >= ${isoText(since)}
    order by o.started_at desc limit 1`;
  return rows[0];
}

/** A complete scan, without its tokens. */
interface ScanSummary {
  startedAt: Instant;
  endedAt: Instant;
  /** Of the tokens listed, as text. */
  total: string | null;
}

/** The newest complete scan of each of these contracts. */
export async function newestScans(
  db: Queryable,
  contractIds: readonly bigint[],
): Promise<Map<bigint, ScanSummary>> {
  if (contractIds.length === 0) return new Map();
  const rows = await db.sql<(ScanSummary & { contractId: bigint })[]>`
    select c.id as contract_id, o.started_at, o.ended_at, o.total
    from unnest(${contractIds.map(String)}::numeric[]) as c(id)
    cross join lateral (
      select s.started_at, s.ended_at, s.record ->> 'total' as total
      from tallyhook.observations s
      where s.kind = 'scan' and s.result = 'seen' and s.target like 'scan:' || c.id || ':%'
      order by s.started_at desc limit 1) o`;
  return new Map(rows.map((row) => [row.contractId, row]));
}

/** Several observations may start in the same millisecond. */
interface ObservationCursor {
  unchangedSince: Instant;
  id: string;
}

/** The observations of a target before a cursor, newest first. */
export async function listObservationsBefore(
  db: Queryable,
  target: string,
  page: { before?: ObservationCursor | undefined; limit: number },
): Promise<StoredObservation[]> {
  const { sql } = db;
  const { before } = page;
  return sql<StoredObservation[]>`
    select ${observationColumns(sql)} from tallyhook.observations o
    where target = ${target}
      ${
        before
          ? sql`and (o.started_at, id) < (${isoText(before.unchangedSince)}, ${before.id})`
          : sql``
      }
    order by o.started_at desc, id desc limit ${page.limit}`;
}

/**
 * The observation of a target that was newest at `from`, and the first ones after it until `until`,
 * oldest first: later traffic on the target cannot push them out.
 */
export async function listObservationsAround(
  db: Queryable,
  target: string,
  { from, until, limit }: { from: Instant; until: Instant; limit: number },
): Promise<StoredObservation[]> {
  const { sql } = db;
  return sql<StoredObservation[]>`
    (select ${observationColumns(sql)} from tallyhook.observations o
      where target = ${target} and o.started_at < ${isoText(from)}
      order by o.started_at desc, id desc limit 1)
    union all
    (select ${observationColumns(sql)} from tallyhook.observations o
      where target = ${target} and o.started_at >= ${isoText(from)}
        and o.started_at <= ${isoText(until)}
      order by o.started_at, id limit ${limit})
    order by "unchangedSince", id`;
}
