/** Transitions: the one statement that changes states, and what is noted beside them. */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { assert } from '../kernel/errors.ts';
import type { Json } from '../kernel/json.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { NO_EVENTS, type PreparedEvents } from '../outbox/outbox.ts';
import type { operationDetail } from '../resources/operations/operation.ts';
import type { Row } from '../resources/resource.ts';
import { addDuePostings } from './due-postings.ts';
import {
  isInLedger,
  type Operation,
  outcomeOf,
  type State,
  sameApp,
  statesBefore,
} from './operation.ts';
import { operationColumns } from './store.ts';

type Facts =
  | ('evidence' | 'txAppNo' | 'txLogNo' | 'txHash' | 'tokenId')
  | ('errorClass' | 'errorStatus' | 'errorCode' | 'errorMessage' | 'answerStatus' | 'answeredAt')
  | ('sentAt' | 'sendDeadlineAt' | 'effectiveAt' | 'effectiveBasis' | 'settledAt' | 'ambiguous');

/** A change of state with its facts; absent members keep the values of their columns. */
export interface Move extends Partial<Pick<Operation, Facts>> {
  id: string;
  to: State;
  /** The only states that it leaves; by default all that may precede `to`. */
  before?: readonly State[];
  at: Instant;
  cause: string;
  /** Of a move to `sending`, the daemon that sends it; else the one that moves it. */
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
 * operations that changed; each has the number of the event that the caller emits about it. The
 * moves must be of different operations.
 */
export async function applyTransitions(
  tx: Tx,
  moves: readonly Move[],
  { metrics }: TransitionDeps,
): Promise<Operation[]> {
  const { moved } = await moveOperations(tx, { moves, locks: [], events: NO_EVENTS });
  countStates(tx, metrics, moved);
  return moved;
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

/**
 * The statement of all transitions; see the function of the database. Returns the operations that
 * changed, and how many deliveries the events have.
 * @param input.locks names to lock before anything is read
 * @param input.events each row also names an `operation`, and its `state` that the event is about
 */
export async function moveOperations(
  { sql }: Queryable,
  input: { moves: readonly Move[]; locks: readonly string[]; events: PreparedEvents },
): Promise<{ moved: Operation[]; deliveries: number }> {
  const { moves, locks, events } = input;
  const rows = await sql<(Operation & { deliveries: number })[]>`
    select ${operationColumns(sql)}, m.deliveries
    from tallyhook.move_operations(${asJson(rowsOf(moves))}::jsonb, ${[...locks]}::text[],
      ${isoText(events.recordedAt)}::timestamptz, ${asJson(events.rows)}::jsonb,
      ${asJson(events.shapes)}::jsonb) m
    cross join lateral (select (m.moved).*) o`;
  const moved = rows.map(({ deliveries: _, ...operation }) => operation);
  return { moved, deliveries: rows[0]?.deliveries ?? 0 };
}

/**
 * The operation after the move, if that leaves its state as `moveOperations` does; what the event
 * says that is recorded with it.
 */
export function operationAfter(operation: Operation, move: Move): Operation {
  const { to, answerHeaders: _, answerBody: __, ...facts } = move;
  const given = <K extends keyof Operation & keyof Move>(key: K) => facts[key] ?? operation[key];
  return {
    ...operation,
    state: to,
    outcome: outcomeOf(to),
    inLedger: isInLedger(operation.kind, to),
    txAppNo: given('txAppNo'),
    txLogNo: given('txLogNo'),
    txHash: given('txHash'),
    tokenId: given('tokenId'),
    errorClass: move.errorClass ?? null,
    errorStatus: move.errorStatus ?? null,
    errorCode: move.errorCode ?? null,
    errorMessage: move.errorMessage ?? null,
    answerStatus: given('answerStatus'),
    answeredAt: given('answeredAt'),
    effectiveAt: given('effectiveAt'),
    effectiveBasis: given('effectiveBasis'),
    evidence: given('evidence'),
    eventSeq: operation.eventSeq + 1n,
  };
}

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
    before: move.before ?? statesBefore(move.to),
    answerBody: move.answerBody ? Buffer.from(move.answerBody).toString('base64') : null,
    sentAt: textOf(move.sentAt),
    sendDeadlineAt: textOf(move.sendDeadlineAt),
    answeredAt: textOf(move.answeredAt),
    effectiveAt: textOf(move.effectiveAt),
    settledAt: textOf(move.settledAt),
    retryAt: textOf(move.retryAt),
  }));
}

/** Numbers one more event about each of these operations that still waits to settle, by id. */
export async function numberEvents(
  { sql }: Tx,
  ids: readonly string[],
): Promise<Map<string, bigint>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: string; eventSeq: bigint }[]>`
    with waiting as (
      select id from tallyhook.operations
      where id = any(${ids as string[]}::text[]) and state in ('accepted', 'executed')
        and settled_at is null
      order by id for update
    )
    update tallyhook.operations o set event_seq = o.event_seq + 1
    from waiting where o.id = waiting.id returning o.id, o.event_seq`;
  return new Map(rows.map(({ id, eventSeq }) => [id, eventSeq]));
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

function textOf(at: Instant | null | undefined): string | null {
  return at == null ? null : isoText(at);
}

const USAGE_KEPT_HOURS = 48;

/** Deletes counters that no limit reads any more. */
export async function pruneUsage(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    delete from tallyhook.key_usage
    where hour < ${isoText(now)}::timestamptz - make_interval(hours => ${USAGE_KEPT_HOURS})`;
}
