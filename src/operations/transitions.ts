/** Transitions: the one statement that changes states, and what is noted beside them. */
import { asJson, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { assert } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { resumeSubject } from '../outbox/outbox.ts';
import type { operationDetail } from '../resources/operations/operation.ts';
import type { Row } from '../resources/resource.ts';
import { addDuePostings } from './due-postings.ts';
import { isInLedger, type Operation, type State, sameApp, statesBefore } from './operation.ts';
import { operationColumns } from './store.ts';

type Facts =
  | ('evidence' | 'txAppNo' | 'txLogNo' | 'txHash' | 'tokenId')
  | ('errorClass' | 'errorStatus' | 'errorCode' | 'errorMessage' | 'answerStatus' | 'answeredAt')
  | ('sentAt' | 'sendDeadlineAt' | 'effectiveAt' | 'effectiveBasis' | 'settledAt');

/** A change of state with its facts; absent members keep the values of their columns. */
export interface Move extends Partial<Pick<Operation, Facts>> {
  id: string;
  to: State;
  at: Instant;
  cause: string;
  daemonId?: string | null;
  /** True for a decision: only a decision takes back what was accepted or settled. */
  decided?: boolean;
  /** Why the ledger must not post it. */
  quarantineReason?: string;
  /** Nothing was applied: return it to the request queue if its caller still waits. */
  requeue?: boolean;
  /** Of a requeue: when the service allows the next send, if it said so. */
  retryAt?: Instant | undefined;
  keyHeld?: boolean;
  answerHeaders?: Json;
  answerBody?: Uint8Array | null;
}

export interface TransitionDeps {
  metrics: Pick<Metrics, 'operations'>;
}

/**
 * Changes the states of operations together with their transitions, effects, key usage and due
 * postings. An operation whose state may not precede the new one stays as it is. Returns the
 * operations that changed. The moves must be of different operations.
 * @param emit emits the events of the changed operations, pipelined with the due postings
 */
export async function applyTransitions(
  tx: Tx,
  moves: readonly Move[],
  { metrics }: TransitionDeps,
  emit?: (changed: readonly Operation[]) => Promise<unknown>,
): Promise<Operation[]> {
  const moved = await moveStates(tx, moves);
  countStates(tx, metrics, moved);
  const at = new Map(moves.map((move) => [move.id, move.at]));
  const due = moved.flatMap(({ id, kind, fromState, inLedger, quarantineReason }) =>
    isInLedger(kind, fromState) !== inLedger
      ? [{ operationId: id, dueAt: at.get(id) ?? 0, quarantineReason }]
      : [],
  );
  const changed = moved.map(({ fromState: _, quarantineReason: __, ...operation }) => operation);
  for (const { id, fromState } of moved)
    if (fromState === 'settled' || fromState === 'rejected') await resumeEvents(tx, id, fromState);
  await Promise.all([addDuePostings(tx, due), emit?.(changed)]);
  return changed;
}

/** An event is recorded with the change that it reports, in passes that may be long. */
const EVENT_AFTER_MS = 60_000;
/** Accepted, stuck and settled: where retention has removed the events. */
const EVENTS_BEFORE = 3;

/** The event of this state may have been the last one: a further one continues its numbers. */
async function resumeEvents(tx: Tx, id: string, state: State): Promise<void> {
  const rows = await tx.sql<{ at: Instant }[]>`
    select t.at from tallyhook.transitions t
    where t.operation_id = ${id} and t.to_state = ${state} order by t.id desc limit 1`;
  const from = rows[0]?.at ?? 0;
  const span = { from, until: from + EVENT_AFTER_MS, otherwise: EVENTS_BEFORE };
  await resumeSubject(tx, `operation:${id}`, span);
}

/** Counts changes of states once they are committed. */
export function countStates(
  tx: Tx,
  metrics: Pick<Metrics, 'operations'>,
  reached: readonly Pick<Operation, 'kind' | 'state'>[],
): void {
  tx.afterCommit(() => {
    for (const { kind, state } of reached) metrics.operations.inc({ kind, state });
  });
}

type Moved = Operation & { fromState: State; quarantineReason: string | null };

function rowsOf(moves: readonly Move[]) {
  assert(new Set(moves.map(({ id }) => id)).size === moves.length, 'each operation moves once');
  const numbered = Map.groupBy(moves, ({ txLogNo }) => txLogNo ?? null);
  const isRepeated = ({ id, txAppNo, txLogNo }: Move) =>
    txLogNo != null &&
    numbered.get(txLogNo)?.some((other) => other.id !== id && sameApp(other.txAppNo, txAppNo));
  return moves.map((move) => ({
    ...move,
    repeated: isRepeated(move) ?? false,
    at: isoText(move.at),
    before: statesBefore(move.to),
    answerBody: move.answerBody ? Buffer.from(move.answerBody).toString('base64') : null,
    sentAt: textOf(move.sentAt),
    sendDeadlineAt: textOf(move.sendDeadlineAt),
    answeredAt: textOf(move.answeredAt),
    effectiveAt: textOf(move.effectiveAt),
    settledAt: textOf(move.settledAt),
    retryAt: textOf(move.retryAt),
  }));
}

function rowsIn(sql: Sql, moves: readonly Move[]) {
  return sql`
    select * from jsonb_to_recordset(${asJson(rowsOf(moves))}::jsonb) as x(id text, "to" text,
      at timestamptz, cause text, "daemonId" text, evidence jsonb, "keyHeld" boolean,
      decided boolean, requeue boolean, repeated boolean, "quarantineReason" text,
      "txAppNo" numeric, "txLogNo" numeric, "txHash" text, "tokenId" numeric,
      "errorClass" text, "errorStatus" int, "errorCode" text, "errorMessage" text,
      "answerStatus" int, "answerHeaders" json, "answerBody" text,
      "sentAt" timestamptz, "sendDeadlineAt" timestamptz, "answeredAt" timestamptz,
      "effectiveAt" timestamptz, "effectiveBasis" text, "settledAt" timestamptz,
      "retryAt" timestamptz, before text[])`;
}

async function moveStates({ sql }: Tx, moves: readonly Move[]): Promise<Moved[]> {
  return sql<Moved[]>`
    with x as (
      ${rowsIn(sql, moves)}
    ), locked as (
      select o.id, o.state, o.outcome, ${usageColumns(sql)},
        case when x.requeue and o.state = 'sending' and o.expires_at > x.at
          then 'queued' else x."to" end as to_state
      from tallyhook.operations o join x on x.id = o.id
      -- Else a plan that was made while the table was small scans all of it, until it is analyzed.
      where o.id = any(array(select x.id from x)) and o.state = any(x.before)
        and (x.decided or x."to" <> 'not_executed' or o.state not in ('accepted', 'settled'))
      order by o.id for update of o
    ), history as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence)
      select l.id, l.state, l.to_state, x.at, x.cause, x.evidence
      from locked l join x on x.id = l.id order by l.id
    ), moved as (
      update tallyhook.operations o set
        state = l.to_state, daemon_id = null,
        retry_at = case when l.to_state = 'queued' then ${retryAt(sql)} end,
        key_held = o.key_held and (coalesce(x."keyHeld", true) or l.to_state = 'queued'),
        sent_at = coalesce(x."sentAt", o.sent_at),
        send_deadline_at = coalesce(x."sendDeadlineAt", o.send_deadline_at),
        tx_app_no = coalesce(x."txAppNo", o.tx_app_no),
        tx_log_no = coalesce(x."txLogNo", o.tx_log_no),
        tx_hash = coalesce(x."txHash", o.tx_hash), token_id = coalesce(x."tokenId", o.token_id),
        error_class = x."errorClass", error_status = x."errorStatus",
        error_code = x."errorCode", error_message = x."errorMessage",
        answer_status = coalesce(x."answerStatus", o.answer_status),
        answer_headers = coalesce(x."answerHeaders", o.answer_headers),
        answer_body = coalesce(decode(x."answerBody", 'base64'), o.answer_body),
        answered_at = case when l.to_state <> 'queued'
          then coalesce(x."answeredAt", o.answered_at) end,
        -- What is in the ledger has the time of its entries: a late answer does not move it.
        effective_at = coalesce(case when o.in_ledger then o.effective_at end, x."effectiveAt",
          o.effective_at),
        effective_basis = coalesce(x."effectiveBasis", o.effective_basis),
        settled_at = case when l.to_state in ('executed', 'not_executed') then null
          else coalesce(x."settledAt", o.settled_at) end,
        evidence = coalesce(x.evidence, o.evidence)
      from locked l join x on x.id = l.id
      where o.id = l.id
      returning ${operationColumns(sql)}, ${usageColumns(sql)}, l.state as from_state,
        case when x."txLogNo" is not null and (x.repeated or exists (
            select from tallyhook.operations p
            where p.tx_log_no = x."txLogNo" and p.id <> o.id and p.in_ledger
              and (p.tx_app_no = x."txAppNo") is not false))
          then 'repeated_tx_log_no' else x."quarantineReason" end as quarantine_reason
    ), effects as (
      update tallyhook.operation_effects e
      set phase = p.phase
      from moved m cross join lateral (${phaseOf(sql)}) p
      where e.operation_id = m.id and e.phase <> p.phase
        and not (e.phase = 'taken_back' and p.phase = 'not_executed')
    ), usage as (
      ${countUsage(
        sql,
        sql`
          select l.key_id, l.usage_hour, -l.usage as usage from locked l
          where l.outcome <> 'not_executed'
          union all
          select m.key_id, m.usage_hour, m.usage from moved m where m.outcome <> 'not_executed'`,
      )}
    )
    select ${operationColumns(sql)}, o.from_state, o.quarantine_reason from moved o`;
}

type Detail = Row<typeof operationDetail>;
type Transition = Detail['transitions'][number];

export async function listTransitions(db: Queryable, operationId: string): Promise<Transition[]> {
  return db.sql<Transition[]>`
    select from_state, to_state, at, cause, evidence from tallyhook.transitions
    where operation_id = ${operationId} order by id limit 1000`;
}

/** Open drifts and operations that could hold the difference which an operation makes. */
export type WaitsFor = NonNullable<Detail['waitsFor']>;

/** Cause of a transition that keeps the state; its evidence says what the operation waits for. */
const HELD = 'it does not settle: something else could hold the same difference';

/** What an operation waits for by the newest of its transitions; null if nothing is noted. */
export function waitsForOf(
  { state }: Pick<Operation, 'state'>,
  transitions: readonly Transition[],
): WaitsFor | null {
  const newest = transitions.at(-1);
  const isHeld = newest?.cause === HELD && newest.toState === state;
  return isHeld ? (newest.evidence as { drifts: string[]; operations: string[] }) : null;
}

/**
 * Notes with a transition that keeps the state what executed operations wait for, unless one of
 * these is noted already.
 */
export async function hold(
  tx: Tx,
  waitsFor: ReadonlyMap<string, WaitsFor>,
  now: Instant,
): Promise<void> {
  if (waitsFor.size === 0) return;
  const rows = [...waitsFor].map(([id, evidence]) => ({ id, evidence }));
  await tx.sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, evidence jsonb)
    ), locked as (
      select o.id, o.state, x.evidence
      from x join tallyhook.operations o on o.id = x.id
      where o.state in ('accepted', 'executed') order by o.id for update of o
    )
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence)
    select l.id, l.state, l.state, ${isoText(now)}::timestamptz, ${HELD}, l.evidence
    from locked l
    where not exists (
      select from (select t.cause, t.evidence from tallyhook.transitions t
        where t.operation_id = l.id order by t.id desc limit 1) n
      cross join lateral (values ('drifts'), ('operations')) as m(name)
      where n.cause = ${HELD} and n.evidence -> m.name ?| array(
        select jsonb_array_elements_text(l.evidence -> m.name)))`;
}

/** Another time at which an operation took effect, because of what was observed. */
export interface Redating {
  id: string;
  effectiveAt: Instant;
  /** It is moved only if its time is before or after these. */
  outside: { before: Instant; after: Instant };
  evidence: Json;
}

/**
 * Moves the effective time with a transition that keeps the state, and has the ledger reverse the
 * posting and post it again at that time: entries never change.
 */
export async function redate(
  tx: Tx,
  { id, effectiveAt, outside, evidence }: Redating,
  now: Instant,
): Promise<void> {
  const { before, after } = outside;
  const rows = await tx.sql<{ inLedger: boolean }[]>`
    with moved as (
      update tallyhook.operations o set effective_at = ${isoText(effectiveAt)}
      where o.id = ${id} and o.outcome = 'executed' and (o.effective_at > ${isoText(after)}
        ${Number.isFinite(before) ? tx.sql`or o.effective_at < ${isoText(before)}` : tx.sql``})
      returning o.id, o.state, o.in_ledger
    ), history as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence)
      select id, state, state, ${isoText(now)}::timestamptz, 'observed when it took effect',
        ${asJson(evidence)}::jsonb
      from moved
    )
    select in_ledger from moved`;
  if (rows[0]?.inLedger)
    await addDuePostings(tx, [{ operationId: id, dueAt: now, quarantineReason: null }]);
}

/** A write is sent again after a second, then after twice as long each time, at most a minute. */
const REQUEUE_BASE_S = 1;
const REQUEUE_MAX_S = 60;

function retryAt(sql: Sql) {
  return sql`greatest(x."retryAt", x.at + make_interval(secs => least(${REQUEUE_MAX_S},
    ${REQUEUE_BASE_S} * 2 ^ (select least(max(s.n), 10) - 1 from tallyhook.sends s
      where s.operation_id = o.id))))`;
}

/** The phase of a moved operation's effects; see the table. */
function phaseOf(sql: Sql) {
  return sql`
    select case
      when m.state in ('queued', 'undecided', 'settled') then m.state
      when m.outcome = 'not_executed' and m.from_state in ('accepted', 'executed', 'settled')
        then 'taken_back'
      else m.outcome end as phase`;
}

function textOf(at: Instant | null | undefined): string | null {
  return at == null ? null : isoText(at);
}

const USAGE_KEPT_HOURS = 48;

/**
 * What operation `o` counts for the daily limit of its key, and its hour: that in which it is sent,
 * and `infinity` while it waits in the request queue. The last 25 hours are never less than the
 * last 24 hours of writes.
 */
export function usageColumns(sql: Sql) {
  return sql`o.key_id,
    case when o.source = 'gateway' then greatest(o.amount, 0) + greatest(o.fee_amount, 0) end
      as usage,
    case o.state when 'queued' then 'infinity'
      else date_trunc('hour', coalesce(o.sent_at, o.recorded_at), 'UTC') end as usage_hour`;
}

/** Adds changes (`key_id`, `usage_hour`, `usage`) to the counters of keys that have some. */
export function countUsage(sql: Sql, changes: ReturnType<Sql>) {
  return sql`
    insert into tallyhook.key_usage as k (key_id, hour, moved)
    select c.key_id, c.usage_hour, sum(c.usage) from (${changes}) c
    where exists (select from tallyhook.key_usage u where u.key_id = c.key_id)
    group by c.key_id, c.usage_hour having sum(c.usage) <> 0
    order by c.key_id, c.usage_hour
    on conflict (key_id, hour) do update set moved = k.moved + excluded.moved`;
}

/** Deletes counters that no limit reads any more. */
export async function pruneUsage(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    delete from tallyhook.key_usage
    where hour < ${isoText(now)}::timestamptz - make_interval(hours => ${USAGE_KEPT_HOURS})`;
}
