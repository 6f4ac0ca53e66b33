/** Sends: attempts to deliver an operation to the service, recorded before they begin. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { operationDetail } from '../../resources/operations/operation.ts';
import type { Row } from '../../resources/resource.ts';

type Send = Row<typeof operationDetail>['sends'][number] & { daemonId: string };

export async function listSends(db: Queryable, operationId: string): Promise<Send[]> {
  return db.sql<Send[]>`
    select n::int as n, started_at, deadline_at, daemon_id, after from tallyhook.sends
    where operation_id = ${operationId} order by n limit 1000`;
}

/** Whether the service asked writes to wait; another daemon may have received that. */
export function isThrottled({ sql }: Queryable, at: Instant) {
  return sql`exists (select from tallyhook.quota
    where name = 'app-write' and blocked_until > ${isoText(at)})`;
}

/** Whether this send was recorded in this database. */
export async function hasSend(
  db: Queryable,
  { operationId, n }: { operationId: string; n: number },
): Promise<boolean> {
  const rows = await db.sql`
    select 1 as one from tallyhook.sends where operation_id = ${operationId} and n = ${n}`;
  return rows.length > 0;
}

/**
 * Records one more send of the operation; returns its number. Undefined when it may not be sent
 * again: another daemon sends it, its deadline has passed, its outcome is known, or the service
 * asked writes to wait.
 */
export async function insertSend(
  tx: Tx,
  send: {
    operationId: string;
    daemonId: string;
    epoch: bigint;
    startedAt: Instant;
    deadlineAt: Instant;
    after: string;
  },
): Promise<number | undefined> {
  const at = isoText(send.startedAt);
  const rows = await tx.sql<{ n: number }[]>`
    insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch, after)
    select o.id, (select coalesce(max(s.n), 0) + 1 from tallyhook.sends s
        where s.operation_id = o.id), ${at}::timestamptz,
      ${isoText(send.deadlineAt)}::timestamptz, ${send.daemonId}, ${send.epoch.toString()}::bigint,
      ${send.after}
    from tallyhook.operations o
    where o.id = ${send.operationId} and o.state = 'sending' and o.daemon_id = ${send.daemonId}
      and o.send_deadline_at > ${at} and not ${isThrottled(tx, send.startedAt)}
    returning n`;
  return rows[0]?.n;
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
