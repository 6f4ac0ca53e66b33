/** Drifts: their rows, their history, their sums and their events. */
import { asJson, type Queryable, type Sql, type Tx } from '../../db/connect.ts';
import { rowOf } from '../../db/rows.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { EventData, EventType } from '../../resources/delivery/events.ts';
import type {
  Cause,
  DriftState,
  drift,
  driftDetail,
  driftSummary,
} from '../../resources/ledger/drift.ts';
import type { Row } from '../../resources/resource.ts';
import { driftActions, drifts } from '../tables.ts';

/** The amount, once it is exact, equals both bounds. */
export interface Drift extends Omit<Row<typeof drift>, 'amountMin' | 'amountMax' | 'proposal'> {
  walletKey: string;
  min: bigint;
  max: bigint;
}

function driftColumns(sql: Sql) {
  return sql`id, wallet_key, addr, amount, amount_min as min, amount_max as max, state,
    suspected_at, opened_at, closed_at, window_from, window_to, evidence, cause, prepared,
    operator, counterpart, assignee, closed_by`;
}

export async function insertDrift({ sql }: Tx, drift: Drift): Promise<void> {
  const row = { ...drift, amountMin: drift.min, amountMax: drift.max };
  await sql`insert into tallyhook.drifts ${rowOf(sql, drifts, row)}`;
}

/** The open drifts of these wallets, oldest first. */
export async function listOpenDrifts(db: Queryable, keys: readonly string[]): Promise<Drift[]> {
  return db.sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where wallet_key = any(${keys as string[]}::text[]) and closed_at is null
    order by opened_at, id`;
}

interface DriftFilter {
  /** `unclosed` stands for open and proposed ones. */
  state?: DriftState | 'unclosed' | undefined;
  cause?: Cause | undefined;
  addr?: string | undefined;
  assignee?: string | undefined;
  /** The `order` of a bucket of the summary. */
  age?: { order: number; now: Instant } | undefined;
  endedSince?: Instant | undefined;
}

/** Newest first. */
export async function listDrifts(
  db: Queryable,
  { state, cause, addr, assignee, age, endedSince }: DriftFilter,
  page: { before?: string | undefined; limit: number },
): Promise<Drift[]> {
  const { sql } = db;
  const ofState =
    state === 'unclosed' ? sql`and closed_at is null` : sql`and state = ${state ?? ''}`;
  return sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where true
      ${state ? ofState : sql``}
      ${cause ? sql`and cause = ${cause}` : sql``}
      ${addr ? sql`and wallet_key = ${addressKey(addr)}` : sql``}
      ${assignee ? isOf(sql, assignee) : sql``}
      ${
        age
          ? sql`and exists (select from tallyhook.age_buckets where bucket_order = ${age.order}
              and from_age <= ${isoText(age.now)}::timestamptz - suspected_at
              and to_age > ${isoText(age.now)}::timestamptz - suspected_at)`
          : sql``
      }
      ${endedSince === undefined ? sql`` : sql`and closed_at >= ${isoText(endedSince)}`}
      ${page.before ? sql`and id < ${page.before}` : sql``}
    order by id desc limit ${page.limit}`;
}

const isOf = (sql: Sql, assignee: string) =>
  sql`and tallyhook.owner_key(assignee) = tallyhook.owner_key(${assignee})`;

export async function findDrift(db: Queryable, id: string): Promise<Drift | undefined> {
  const rows = await db.sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where id = ${id}`;
  return rows[0];
}

/**
 * A drift and its counterpart, locked until the end of the transaction. The counterpart only if it
 * is in the same part of its life: both are unclosed, or both are booked.
 */
export async function lockJointDrifts(tx: Tx, id: string): Promise<Drift[]> {
  const locked = await tx.sql<Drift[]>`
    select ${driftColumns(tx.sql)} from tallyhook.drifts
    where id = ${id}
      or id = (select counterpart from tallyhook.drifts where id = ${id}) order by id for update`;
  const own = locked.find((drift) => drift.id === id);
  const stands = ({ state, closedAt }: Drift) => (closedAt === null ? 'unclosed' : state);
  return own ? locked.filter((drift) => stands(drift) === stands(own)) : [];
}

/**
 * The unclosed drift of exactly this amount on a wallet, locked; of several the one that an
 * operation contradicts, or the oldest.
 * @param during what it shares an instant with, if it must
 */
export async function lockOpenDrift(
  tx: Tx,
  {
    walletKey,
    amount,
    operationId,
    during,
  }: {
    walletKey: string;
    amount: bigint;
    operationId: string;
    during: Pick<Drift, 'windowFrom' | 'windowTo'> | undefined;
  },
): Promise<Drift | undefined> {
  const [from, to] = [during?.windowFrom ?? null, during?.windowTo ?? null];
  const rows = await tx.sql<Drift[]>`
    select ${driftColumns(tx.sql)} from tallyhook.drifts
    where wallet_key = ${walletKey} and closed_at is null
      and amount = ${amount.toString()}::numeric
      and window_to >= ${from === null ? '-infinity' : isoText(from)}::timestamptz
      and coalesce(window_from, '-infinity')
        <= ${to === null ? 'infinity' : isoText(to)}::timestamptz
    order by evidence ->> 'contradicts' is not distinct from ${operationId} desc, opened_at, id
    limit 1 for update`;
  return rows[0];
}

/** Stores what is known better of an open drift. */
export async function reviseDrift(
  tx: Tx,
  drift: Pick<
    Drift,
    'id' | 'amount' | 'min' | 'max' | 'cause' | 'prepared' | 'operator' | 'counterpart'
  >,
): Promise<void> {
  await tx.sql`
    update tallyhook.drifts set amount = ${drift.amount?.toString() ?? null}::numeric,
      amount_min = ${drift.min.toString()}::numeric, amount_max = ${drift.max.toString()}::numeric,
      cause = ${drift.cause}, prepared = ${asJson(drift.prepared)}::jsonb,
      operator = ${asJson(drift.operator)}::jsonb, counterpart = ${drift.counterpart}
    where id = ${drift.id} and closed_at is null`;
}

/** The unclosed drift gets this counterpart. */
export async function pairDrift(tx: Tx, id: string, counterpart: string): Promise<void> {
  await tx.sql`
    update tallyhook.drifts set counterpart = ${counterpart}
    where id = ${id} and closed_at is null`;
}

export async function assignDrift(tx: Tx, id: string, assignee: string | null): Promise<void> {
  await tx.sql`update tallyhook.drifts set assignee = ${assignee} where id = ${id}`;
}

export async function markProposed(tx: Tx, id: string): Promise<void> {
  await tx.sql`
    update tallyhook.drifts set state = 'proposed' where id = ${id} and state = 'open'`;
}

/** Ends a drift; false when it was closed already. A booked one that is linked stays closed. */
export async function closeDrift(
  tx: Tx,
  id: string,
  { state, closedBy }: { state: DriftState; closedBy: Json },
  at: Instant,
): Promise<boolean> {
  const rows = await tx.sql`
    update tallyhook.drifts set state = ${state}, closed_by = ${asJson(closedBy)}::jsonb,
      closed_at = coalesce(closed_at, ${isoText(at)})
    where id = ${id} and (closed_at is null or state = 'booked' and ${state} = 'linked')
    returning 1 as one`;
  return rows.length === 1;
}

type DriftAction = Row<typeof driftDetail>['actions'][number];

/** @param action `by` an owner, or `reconciler` */
export async function insertDriftAction(
  { sql }: Tx,
  action: DriftAction & { driftId: string },
): Promise<void> {
  await sql`insert into tallyhook.drift_actions ${rowOf(sql, driftActions, action)}`;
}

export async function listDriftActions(db: Queryable, driftId: string): Promise<DriftAction[]> {
  return db.sql<DriftAction[]>`
    select action, at, by, detail from tallyhook.drift_actions where drift_id = ${driftId}
    order by id limit 1000`;
}

type Summary = Row<typeof driftSummary>;
type Sums = Omit<Summary['byAge'][number], 'order' | 'bucket'>;

/**
 * Unclosed drifts by cause and age, and how long the ended ones took. Positive and negative amounts
 * are never netted.
 */
export async function summarizeDrifts(
  db: Queryable,
  now: Instant,
  endedSince: Instant,
): Promise<Summary> {
  const [groups, ended] = await Promise.all([listGroups(db, now), countEnded(db, endedSince)]);
  return {
    byCause: groups.flatMap(({ cause, bucket: _, order: __, ...sums }) =>
      cause === null ? [] : [{ ...sums, cause }],
    ),
    byAge: groups.flatMap(({ cause: _, bucket, order, ...sums }) =>
      bucket === null || order === null ? [] : [{ ...sums, bucket, order }],
    ),
    ended: { since: endedSince, ...ended },
  };
}

export interface OpenDrifts {
  open: number;
  unassigned: number;
  proposed: number;
  /** When the first of them was first observed. */
  oldestAt: Instant | null;
}

/** Counted up to `max`. */
export async function countOpenDrifts({ sql }: Queryable, max: number): Promise<OpenDrifts> {
  const rows = await sql<OpenDrifts[]>`
    select count(*)::int as open, (count(*) filter (where assignee is null))::int as unassigned,
      (count(*) filter (where state = 'proposed'))::int as proposed,
      min(suspected_at) as oldest_at
    from (select assignee, state, suspected_at from tallyhook.drifts where closed_at is null
      limit ${max}) d`;
  return rows[0] ?? { open: 0, unassigned: 0, proposed: 0, oldestAt: null };
}

/** Drifts whose amount is not exact yet are counted, and add nothing to the sums. */
type Group = Sums & { cause: Cause | null; bucket: string | null; order: number | null };

async function listGroups({ sql }: Queryable, now: Instant): Promise<Group[]> {
  return sql<Group[]>`
    select d.cause, b.bucket, b.bucket_order as "order", count(*)::int as drifts,
      (count(*) filter (where c.id is null or d.id < c.id))::int as findings,
      coalesce(sum(d.amount) filter (where d.amount > 0), 0) as up,
      coalesce(sum(d.amount) filter (where d.amount < 0), 0) as down
    from tallyhook.drifts d
    join tallyhook.age_buckets b on b.from_age <= ${isoText(now)}::timestamptz - d.suspected_at
      and b.to_age > ${isoText(now)}::timestamptz - d.suspected_at
    left join tallyhook.drifts c on c.id = d.counterpart and c.closed_at is null
    where d.closed_at is null
    group by grouping sets ((d.cause), (b.bucket, b.bucket_order))
    order by d.cause nulls last, b.bucket_order`;
}

const ENDED_MAX = 10_000;

/** The drifts that ended since then, at most the last 10,000, and their median time to the end. */
export async function countEnded(
  { sql }: Queryable,
  since: Instant,
): Promise<Omit<Summary['ended'], 'since'>> {
  const rows = await sql<Omit<Summary['ended'], 'since'>[]>`
    select count(*)::int as drifts, round((percentile_cont(0.5) within group
      (order by extract(epoch from closed_at - suspected_at)))::numeric, 3)::float8 as median_s
    from (select closed_at, suspected_at from tallyhook.drifts
      where closed_at >= ${isoText(since)} order by closed_at desc limit ${ENDED_MAX}) d`;
  return rows[0] ?? { drifts: 0, medianS: null };
}

type DriftFields = EventData<'wallet.drift_opened'>;
type DriftEvent = Extract<EventType, `wallet.drift_${string}`>;
/** An event, and what it says besides the drift. */
type Changed = {
  [T in DriftEvent]: { type: T; data: Omit<EventData<T>, keyof DriftFields> };
}[DriftEvent];

export function driftEvent(drift: Drift, changed: Changed, occurredAt: Instant): EventDraft {
  const data = { ...driftFields(drift), ...changed.data };
  return {
    type: changed.type,
    subject: `wallet:${drift.walletKey}`,
    occurredAt,
    data,
  } as EventDraft;
}

function driftFields(drift: Drift): DriftFields {
  return {
    addr: drift.addr,
    drift_id: drift.id,
    amount: drift.amount === null ? null : decimalText(drift.amount),
    amount_min: decimalText(drift.min),
    amount_max: decimalText(drift.max),
    window_from: isoTextOrNull(drift.windowFrom),
    window_to: isoText(drift.windowTo),
    evidence: drift.evidence as Record<string, unknown>,
    cause: drift.cause,
    counterpart: drift.counterpart,
  };
}
