/** SQL of the state of the service. */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { ServiceState } from '../../resources/admin/status.ts';
import type { DueTarget } from '../targets.ts';
import type { Service } from './state.ts';

/** Of one list; a service that changes more often is shown as far as this. */
const CHANGES_MAX = 1_000;

const at = (instant: Instant | null) => (instant === null ? null : isoText(instant));

/**
 * Serializes concurrent probes until the end of the transaction; returns when the next probe is
 * due, or undefined before the first one.
 */
export async function lockService(tx: Tx): Promise<Instant | undefined> {
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.service_state'))`;
  const rows = await tx.sql<{ nextProbeAt: Instant }[]>`
    select next_probe_at from tallyhook.service_state where name = 'upstream'`;
  return rows[0]?.nextProbeAt;
}

interface StoredService extends Service {
  nextProbeAt: Instant;
  /** The last answer to a read of any daemon, some seconds old. */
  answeredAt: Instant | null;
}

/** The state of the service; undefined before the first probe. */
export async function findService(db: Queryable): Promise<StoredService | undefined> {
  const rows = await db.sql<StoredService[]>`
    select state, since, down_from, down_until, announced, failures, next_probe_at, answered_at
    from tallyhook.service_state where name = 'upstream'`;
  return rows[0];
}

export async function saveService(tx: Tx, service: Service, nextProbeAt: Instant): Promise<void> {
  await tx.sql`
    insert into tallyhook.service_state
      (name, state, since, down_from, down_until, announced, failures, next_probe_at)
    values ('upstream', ${service.state}, ${isoText(service.since)}, ${at(service.downFrom)},
      ${at(service.downUntil)},
      ${asJson(service.announced)}::jsonb,
      ${service.failures}, ${isoText(nextProbeAt)})
    on conflict (name) do update set state = excluded.state, since = excluded.since,
      down_from = excluded.down_from, down_until = excluded.down_until,
      announced = excluded.announced, failures = excluded.failures,
      next_probe_at = excluded.next_probe_at`;
}

/** The service is in another state from then on. */
export async function insertServiceChange(
  tx: Tx,
  { state, since }: Pick<Service, 'state' | 'since'>,
): Promise<void> {
  await tx.sql`
    with former as (
      delete from tallyhook.service_changes
      where at < ${isoText(since)}::timestamptz - interval '1 year'
    )
    insert into tallyhook.service_changes (at, state) values (${isoText(since)}, ${state})
    on conflict (at) do update set state = excluded.state`;
}

/** A state of the service from an instant on, until the next one. */
export interface ServiceChange {
  at: Instant;
  state: ServiceState;
}

/** The changes since then, and the one before them, oldest first. */
export async function listServiceChanges(db: Queryable, since: Instant): Promise<ServiceChange[]> {
  return db.sql<ServiceChange[]>`
    select at, state from tallyhook.service_changes
    where at >= coalesce((select max(at) from tallyhook.service_changes
      where at <= ${isoText(since)}), '-infinity')
    order by at limit ${CHANGES_MAX}`;
}

/** Keeps the last answer to a read of any daemon. */
export async function saveAnswered(db: Queryable, answeredAt: Instant): Promise<void> {
  await db.sql`
    update tallyhook.service_state set answered_at = ${isoText(answeredAt)}
    where name = 'upstream'
      and (answered_at is null or answered_at < ${isoText(answeredAt)})`;
}

/** The target that is due first, scans apart; undefined without any. */
export async function findReadable(
  db: Queryable,
): Promise<Pick<DueTarget, 'kind' | 'addr' | 'contractId' | 'tokenId'> | undefined> {
  const rows = await db.sql<Pick<DueTarget, 'kind' | 'addr' | 'contractId' | 'tokenId'>[]>`
    select kind, addr, contract_id, token_id from tallyhook.targets
    where kind <> 'scan' order by next_poll_at limit 1`;
  return rows[0];
}

/** Makes the next probe due now, unless the service is known to be down. */
export async function expediteProbe(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.service_state set next_probe_at = ${isoText(now)}
    where name = 'upstream' and next_probe_at > ${isoText(now)}
      and state in ('active', 'announced')`;
}
