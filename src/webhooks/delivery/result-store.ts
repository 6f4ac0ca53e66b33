/**
 * SQL that stores the results of attempts. Attempts are always logged; a delivery changes only for
 * the holder of its latest claim (fencing token). Pending deliveries are selected by `finished_at`,
 * not by `state`, because with `state` the planner may scan the partial index of everything pending
 * instead of finding each row by its key.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { uuidOf } from '../../kernel/ids.ts';
import type { Health } from '../endpoints/health.ts';
import type { AttemptResult } from './attempt-result.ts';

export interface DeliveryUpdate {
  id: string;
  createdAt: Instant;
  fence: number;
  attempt: {
    n: number;
    at: Instant;
    durationMs: number;
    result: AttemptResult['kind'];
    status: number | null;
    error: string | null;
    responseBody: string | null;
    responseHeaders: Record<string, string> | null;
  } | null;
  state: 'pending' | 'delivered' | 'exhausted' | 'cancelled';
  dueAt: Instant | null;
  scheduleStep: number;
  outOfOrder: boolean;
}

/** Stores a group of results in one statement. Returns the ids of the deliveries that changed. */
export async function storeResults(
  db: Queryable,
  updates: readonly DeliveryUpdate[],
  now: Instant,
): Promise<Set<string>> {
  const rows = updates.map((update) => ({
    id: uuidOf(update.id),
    created_at: isoText(update.createdAt),
    fence: update.fence,
    state: update.state,
    due_at: update.dueAt === null ? null : isoText(update.dueAt),
    schedule_step: update.scheduleStep,
    out_of_order: update.outOfOrder,
    n: update.attempt?.n ?? null,
    at: update.attempt ? isoText(update.attempt.at) : null,
    duration_ms: update.attempt?.durationMs ?? null,
    result: update.attempt?.result ?? null,
    status: update.attempt?.status ?? null,
    error: update.attempt?.error ?? null,
    response_body: update.attempt?.responseBody ?? null,
    response_headers: update.attempt?.responseHeaders ?? null,
  }));
  const changed = await db.sql<{ id: string }[]>`
    with x as (
      select id, created_at, fence, state, due_at, schedule_step, out_of_order, n, at, duration_ms,
        result, status, error, response_body, response_headers
      from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id uuid, created_at timestamptz,
        fence int, state text, due_at timestamptz, schedule_step int, out_of_order boolean, n int,
        at timestamptz, duration_ms int, result text, status int, error text, response_body text,
        response_headers jsonb)
    ), logged as (
      insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result, status, error,
        response_body, response_headers)
      select id, n, at, duration_ms, result, status, error, response_body, response_headers
      from x where n is not null
      -- Stored before, if the response to the commit was lost.
      on conflict do nothing
    )
    update tallyhook.deliveries d set state = x.state,
      due_at = coalesce(x.due_at, d.due_at),
      attempts = greatest(d.attempts, x.n),
      schedule_step = x.schedule_step, out_of_order = d.out_of_order or x.out_of_order,
      lease_until = null,
      finished_at = case when x.state = 'pending' then null else ${isoText(now)}::timestamptz end
    from x
    where d.created_at = x.created_at and d.id = x.id and d.fence = x.fence
      and d.finished_at is null
    returning 'dlv_' || d.id as id`;
  return new Set(changed.map(({ id }) => id));
}

/** Releases claims that were not sent; they stay due. */
export async function release(
  db: Queryable,
  claims: readonly { id: string; createdAt: Instant; fence: number }[],
): Promise<void> {
  const rows = claims.map((claim) => ({
    id: uuidOf(claim.id),
    created_at: isoText(claim.createdAt),
    fence: claim.fence,
  }));
  await db.sql`
    update tallyhook.deliveries d set lease_until = null
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id uuid, created_at timestamptz, fence int)
    where d.created_at = x.created_at and d.id = x.id and d.fence = x.fence
      and d.finished_at is null`;
}

/**
 * Makes the next delivery of each of these subjects due now. To be called under the lock of the
 * endpoint's health and after `storeResults`, as a separate statement, so that it sees deliveries
 * that a concurrent claim has deferred.
 */
export async function makeNextDue(
  tx: Tx,
  blockers: readonly { endpointId: string; subject: string }[],
  now: Instant,
): Promise<void> {
  if (blockers.length === 0) return;
  const rows = blockers.map(({ endpointId, subject }) => ({
    endpoint_id: uuidOf(endpointId),
    subject,
  }));
  await tx.sql`
    update tallyhook.deliveries d set due_at = least(d.due_at, ${isoText(now)}::timestamptz)
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(endpoint_id uuid, subject text)
    cross join lateral (
      select n.created_at, n.id from tallyhook.deliveries n
      where n.endpoint_id = x.endpoint_id and n.subject = x.subject and n.state = 'pending'
        and not n.out_of_order and n.attempts = 0
      order by n.subject_seq limit 1) next
    where d.created_at = next.created_at and d.id = next.id`;
}

/** Locks the endpoints' health rows in id order and reads them, by endpoint id. */
export async function lockHealth(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, Health & { url: string }>> {
  const rows = await tx.sql<(Health & { endpointId: string; url: string })[]>`
    select h.endpoint_id, h.consecutive_failures,
      h.failing_since, h.paused_until,
      h.last_success_at, p.url
    from tallyhook.endpoint_health h join tallyhook.endpoints p on p.id = h.endpoint_id
    where h.endpoint_id = any(${ids as string[]}::text[])
    order by h.endpoint_id for update of h`;
  return new Map(rows.map(({ endpointId, ...row }) => [endpointId, row]));
}

export async function saveHealth(tx: Tx, healths: ReadonlyMap<string, Health>): Promise<void> {
  if (healths.size === 0) return;
  const text = (at: Instant | null) => (at === null ? null : isoText(at));
  const rows = [...healths].map(([id, health]) => ({
    id,
    failures: health.consecutiveFailures,
    failing_since: text(health.failingSince),
    paused_until: text(health.pausedUntil),
    last_success_at: text(health.lastSuccessAt),
  }));
  await tx.sql`
    update tallyhook.endpoint_health h set consecutive_failures = x.failures,
      failing_since = x.failing_since, paused_until = x.paused_until,
      last_success_at = greatest(h.last_success_at, x.last_success_at)
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, failures int,
      failing_since timestamptz, paused_until timestamptz, last_success_at timestamptz)
    where h.endpoint_id = x.id`;
}
