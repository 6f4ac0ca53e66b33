/** Sends: attempts to deliver an operation to the service, recorded before they begin. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { operationDetail } from '../../resources/operations/operation.ts';
import type { Row } from '../../resources/resource.ts';

type Send = Row<typeof operationDetail>['sends'][number] & { daemonId: string };

export async function listSends(db: Queryable, operationId: string): Promise<Send[]> {
  return db.sql<Send[]>`
    select (row_number() over (order by id))::int as n, at as started_at, deadline_at, daemon_id,
      case when cause <> 'send' then cause when from_state = 'queued' then 'queued' end as after
    from tallyhook.transitions
    where operation_id = ${operationId} and deadline_at is not null order by id limit 1000`;
}

/** Whether the service asked writes to wait; another daemon may have received that. */
export async function isThrottled({ sql }: Queryable, at: Instant): Promise<boolean> {
  const rows = await sql`
    select 1 as one from tallyhook.quota
    where name = 'app-write' and blocked_until > ${isoText(at)}`;
  return rows.length > 0;
}

/** Whether this send was recorded in this database. */
export async function hasSend(
  db: Queryable,
  { operationId, n }: { operationId: string; n: number },
): Promise<boolean> {
  return (await countSends(db, operationId)) >= n;
}

async function countSends({ sql }: Queryable, operationId: string): Promise<number> {
  const rows = await sql<{ n: number }[]>`
    select count(*)::int as n from tallyhook.transitions
    where operation_id = ${operationId} and deadline_at is not null`;
  return rows[0]?.n ?? 0;
}

/**
 * Records one more send of the operation, as a transition that keeps the state; returns its number.
 * Undefined when it may not be sent again: another daemon sends it, its deadline has passed, its
 * outcome is known, or the service asked writes to wait.
 */
export async function insertSend(
  tx: Tx,
  send: {
    operationId: string;
    daemonId: string;
    startedAt: Instant;
    deadlineAt: Instant;
    after: string;
  },
): Promise<number | undefined> {
  const { operationId, daemonId, startedAt, deadlineAt, after } = send;
  if (await isThrottled(tx, startedAt)) return undefined;
  const at = isoText(startedAt);
  const inserted = await tx.sql`
    insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, deadline_at,
      daemon_id)
    select o.id, o.state, o.state, ${at}::timestamptz, ${after},
      ${isoText(deadlineAt)}::timestamptz, ${daemonId}
    from tallyhook.operations o
    where o.id = ${operationId} and o.state = 'sending' and o.daemon_id = ${daemonId}
      and o.send_deadline_at > ${at}
    returning 1 as one`;
  return inserted.length === 0 ? undefined : countSends(tx, operationId);
}

/**
 * Those of these operations that are queued again or have a later send, so that a conclusion of the
 * earlier send does not apply. A send by another daemon counts as later, because clocks differ. All
 * are locked until the end of the transaction. The list of ids keeps a plan that was made without
 * statistics from reading all operations.
 */
export async function lockSentLater(
  tx: Tx,
  moves: readonly { id: string; at: Instant; daemonId?: string | null }[],
): Promise<Set<string>> {
  const rows = moves.map(({ id, at, daemonId }) => ({ id, at: isoText(at), by: daemonId }));
  const later = await tx.sql<{ id: string; later: boolean }[]>`
    select o.id, o.state = 'queued'
      or o.state = 'sending' and (o.sent_at > x.at or o.daemon_id <> x.by) as later
    from tallyhook.operations o
    join jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, at timestamptz, "by" text)
      on x.id = o.id
    where o.id = any(${rows.map(({ id }) => id)}::text[])
    order by o.id for update of o`;
  return new Set(later.flatMap((row) => (row.later ? [row.id] : [])));
}
