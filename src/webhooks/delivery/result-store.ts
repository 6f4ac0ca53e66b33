/**
 * SQL of the end of an attempt. A group of attempts is settled in one statement: the attempts are
 * logged whatever happened, and a delivery changes only for the holder of its latest claim (the
 * fence). That it is still pending is asked by `finished_at`: asked by `state`, the planner may
 * walk through the index of all that is pending instead of finding each row by its key.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Health } from './health.ts';

/** One attempt and what it makes of its delivery. */
export interface Settlement {
  id: string;
  createdAt: Instant;
  fence: number;
  attempt: {
    n: number;
    at: Instant;
    durationMs: number;
    verdict: string;
    status: number | null;
    error: string | null;
    responseBody: string | null;
    responseHeaders: Record<string, string> | null;
  } | null;
  state: 'pending' | 'delivered' | 'exhausted' | 'cancelled';
  dueAt: Instant | null;
  tries: number;
  passed: boolean;
}

/** Settles a group; answers the ids of the deliveries that changed, which were still ours. */
export async function settle(
  db: Queryable,
  settlements: readonly Settlement[],
  now: Instant,
): Promise<Set<string>> {
  const rows = settlements.map((s) => ({
    id: s.id,
    created_at: isoText(s.createdAt),
    fence: s.fence,
    state: s.state,
    due_at: s.dueAt === null ? null : isoText(s.dueAt),
    tries: s.tries,
    passed: s.passed,
    n: s.attempt?.n ?? null,
    at: s.attempt ? isoText(s.attempt.at) : null,
    duration_ms: s.attempt?.durationMs ?? null,
    verdict: s.attempt?.verdict ?? null,
    status: s.attempt?.status ?? null,
    error: s.attempt?.error ?? null,
    response_body: s.attempt?.responseBody ?? null,
    response_headers: s.attempt?.responseHeaders ?? null,
  }));
  const changed = await db.sql<{ id: string }[]>`
    with given as (
      select id, created_at, fence, state, due_at, tries, passed, n, at, duration_ms, verdict,
        status, error, response_body, response_headers
      from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, created_at timestamptz,
        fence int, state text, due_at timestamptz, tries int, passed boolean, n int,
        at timestamptz, duration_ms int, verdict text, status int, error text, response_body text,
        response_headers jsonb)
    ), logged as (
      insert into tallyhook.attempts (delivery_id, n, at, duration_ms, verdict, status, error,
        response_body, response_headers)
      select id, n, at, duration_ms, verdict, status, error, response_body, response_headers
      from given where n is not null
    )
    update tallyhook.deliveries d set state = given.state,
      due_at = coalesce(given.due_at, d.due_at),
      attempts = d.attempts + case when given.n is null then 0 else 1 end, tries = given.tries,
      passed = d.passed or given.passed, lease_until = null,
      finished_at = case when given.state = 'pending' then null
        else ${isoText(now)}::timestamptz end
    from given
    where d.created_at = given.created_at and d.id = given.id and d.fence = given.fence
      and d.finished_at is null
    returning d.id`;
  return new Set(changed.map(({ id }) => id));
}

/** Gives claims back unsent; they are due as before. */
export async function release(
  db: Queryable,
  claims: readonly { id: string; createdAt: Instant; fence: number }[],
): Promise<void> {
  const rows = claims.map((c) => ({
    id: c.id,
    created_at: isoText(c.createdAt),
    fence: c.fence,
  }));
  await db.sql`
    update tallyhook.deliveries d set lease_until = null
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, created_at timestamptz, fence int)
    where d.created_at = x.created_at and d.id = x.id and d.fence = x.fence
      and d.finished_at is null`;
}

/**
 * Makes due at once what waited for these deliveries: the next of each subject. To be called under
 * the lock of the endpoint's health, after the settlement and in a statement of its own, so that it
 * sees what a claim has parked in the meantime.
 */
export async function wakeFollowers(
  tx: Tx,
  ended: readonly { endpointId: string; subject: string; subjectSeq: bigint }[],
  now: Instant,
): Promise<void> {
  if (ended.length === 0) return;
  const rows = ended.map((e) => ({
    endpoint_id: e.endpointId,
    subject: e.subject,
    subject_seq: e.subjectSeq,
  }));
  await tx.sql`
    update tallyhook.deliveries d set due_at = least(d.due_at, ${isoText(now)}::timestamptz)
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(endpoint_id text, subject text,
      subject_seq bigint)
    cross join lateral (
      select n.created_at, n.id from tallyhook.deliveries n
      where n.endpoint_id = x.endpoint_id and n.subject = x.subject and n.state = 'pending'
        and not n.passed and n.attempts = 0
      order by n.subject_seq limit 1) next
    where d.created_at = next.created_at and d.id = next.id`;
}

/** Locks and reads the health of these endpoints, in one order everywhere. */
export async function lockHealth(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, Health & { url: string; state: string }>> {
  const rows = await tx.sql<(Health & { endpointId: string; url: string; state: string })[]>`
    select h.endpoint_id as "endpointId", h.consecutive_failures as "consecutiveFailures",
      h.failing_since as "failingSince", h.hold_until as "holdUntil",
      h.last_success_at as "lastSuccessAt", p.url, p.state
    from tallyhook.endpoint_health h join tallyhook.endpoints p on p.id = h.endpoint_id
    where h.endpoint_id = any(${ids as string[]}::text[])
    order by h.endpoint_id for update of h`;
  return new Map(rows.map(({ endpointId, ...row }) => [endpointId, row]));
}

export async function saveHealth(tx: Tx, healths: ReadonlyMap<string, Health>): Promise<void> {
  if (healths.size === 0) return;
  const text = (at: Instant | null) => (at === null ? null : isoText(at));
  const rows = [...healths].map(([id, h]) => ({
    id,
    failures: h.consecutiveFailures,
    failing_since: text(h.failingSince),
    hold_until: text(h.holdUntil),
    last_success_at: text(h.lastSuccessAt),
  }));
  await tx.sql`
    update tallyhook.endpoint_health h set consecutive_failures = x.failures,
      failing_since = x.failing_since, hold_until = x.hold_until,
      last_success_at = greatest(h.last_success_at, x.last_success_at)
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, failures int,
      failing_since timestamptz, hold_until timestamptz, last_success_at timestamptz)
    where h.endpoint_id = x.id`;
}

/** Disables an endpoint that is enabled; false when it was not. */
export async function disableEndpoint(
  tx: Tx,
  id: string,
  reason: string,
  now: Instant,
): Promise<boolean> {
  const rows = await tx.sql<{ id: string }[]>`
    update tallyhook.endpoints set state = 'disabled', state_reason = ${reason},
      state_at = ${isoText(now)}
    where id = ${id} and state = 'enabled' and deleted_at is null returning id`;
  return rows.length > 0;
}
