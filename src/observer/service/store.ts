/** SQL of the service itself: what it asked us to keep to, and whether it is there. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { QuotaState } from '../../upstream/upstream.ts';
import type { Announced, Service, ServiceState } from './state.ts';

export async function loadQuota(db: Queryable): Promise<QuotaState[]> {
  return db.sql<QuotaState[]>`
    select name, blocked_until, rate, rises_from from tallyhook.quota`;
}

/** Keeps the later deadline and the later throttling, whichever daemon received them. */
export async function saveQuota(db: Queryable, state: QuotaState, now: Instant): Promise<void> {
  const { name, blockedUntil, rate, risesFrom } = state;
  const at = (instant: Instant | null) => (instant === null ? null : isoText(instant));
  await db.sql`
    insert into tallyhook.quota as q (name, blocked_until, rate, rises_from, updated_at)
    values (${name}, ${at(blockedUntil)}, ${rate}, ${at(risesFrom)}, ${isoText(now)})
    on conflict (name) do update set
      blocked_until = greatest(q.blocked_until, excluded.blocked_until),
      rate = case when excluded.rises_from >= coalesce(q.rises_from, '-infinity')
        then excluded.rate else q.rate end,
      rises_from = greatest(q.rises_from, excluded.rises_from),
      updated_at = excluded.updated_at`;
}

/**
 * Locks the state of the service for the change that follows, and answers when the next probe was
 * due; undefined before the first one. Probes that two daemons make at once so follow each other.
 */
export async function lockService(tx: Tx): Promise<Instant | undefined> {
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.service_state'))`;
  const rows = await tx.sql<{ nextProbeAt: Instant }[]>`
    select next_probe_at from tallyhook.service_state where name = 'upstream'`;
  return rows[0]?.nextProbeAt;
}

/** The state of the service; undefined before the first probe. */
export async function findService(
  db: Queryable,
): Promise<(Service & { nextProbeAt: Instant }) | undefined> {
  const rows = await db.sql<
    {
      state: ServiceState;
      since: Instant;
      announced: Announced | null;
      failures: number;
      nextProbeAt: Instant;
    }[]
  >`select state, since, announced, failures, next_probe_at from tallyhook.service_state
    where name = 'upstream'`;
  const row = rows[0];
  return row && { ...row, nextProbeAt: row.nextProbeAt };
}

export async function saveService(
  tx: Tx,
  service: Service,
  now: Instant,
  nextProbeAt: Instant,
  frozenMs: number,
): Promise<void> {
  await tx.sql`
    insert into tallyhook.service_state as s
      (name, state, since, announced, failures, next_probe_at, frozen_ms, checked_at)
    values ('upstream', ${service.state}, ${isoText(service.since)},
      ${asJson(service.announced)}::jsonb,
      ${service.failures}, ${isoText(nextProbeAt)}, ${Math.round(frozenMs)}, ${isoText(now)})
    on conflict (name) do update set state = excluded.state, since = excluded.since,
      announced = excluded.announced, failures = excluded.failures,
      next_probe_at = excluded.next_probe_at, frozen_ms = s.frozen_ms + excluded.frozen_ms,
      checked_at = excluded.checked_at`;
}

/** Brings the next probe forward to now, unless the service is known to be down. */
export async function expediteProbe(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.service_state set next_probe_at = ${isoText(now)}
    where name = 'upstream' and next_probe_at > ${isoText(now)}
      and state in ('active', 'announced')`;
}
