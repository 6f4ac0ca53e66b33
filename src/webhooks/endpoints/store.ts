/** SQL of endpoints and their health. Secrets go in and out encrypted. */
import { asJson, type Orm, type Queryable, type Tx } from '../../db/connect.ts';
import {
  and,
  asc,
  count,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNotNull,
  isNull,
  or,
} from '../../db/drizzle.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { endpointHealth, endpoints } from '../tables.ts';
import { HEALTHY, type Health } from './health.ts';

export type EndpointRow = Omit<typeof endpoints.$inferSelect, 'deletedAt'>;

const { deletedAt: _deletedAt, ...COLUMNS } = getTableColumns(endpoints);
const {
  endpointId: _id,
  rateUsedUntil: _rate,
  probeRequested: _probe,
  recoveredAt: _recovered,
  ...HEALTH_COLUMNS
} = getTableColumns(endpointHealth);

const isLive = isNull(endpoints.deletedAt);
const isLiveWith = (id: string) => and(eq(endpoints.id, id), isLive);

/** Inserts an endpoint and its health; to be called in a transaction. */
export async function insertEndpoint(orm: Orm, row: EndpointRow): Promise<void> {
  await orm.insert(endpoints).values(row);
  await orm.insert(endpointHealth).values({ endpointId: row.id, ...HEALTHY });
}

export async function findEndpoint(orm: Orm, id: string): Promise<EndpointRow | undefined> {
  const rows = await orm.select(COLUMNS).from(endpoints).where(isLiveWith(id)).limit(1);
  return rows[0];
}

/** Who created each of those that live. */
export async function findOwners(orm: Orm, ids: string[]): Promise<ReadonlyMap<string, string>> {
  const rows = await orm
    .select({ id: endpoints.id, owner: endpoints.createdBy })
    .from(endpoints)
    .where(and(inArray(endpoints.id, ids), isLive));
  return new Map(rows.map(({ id, owner }) => [id, owner]));
}

export async function lockEndpoint(orm: Orm, id: string): Promise<EndpointRow | undefined> {
  const query = orm.select(COLUMNS).from(endpoints).where(isLiveWith(id)).limit(1);
  const rows = await query.for('update');
  return rows[0];
}

/** A page of endpoints in the order of their ids, locked. */
export function lockEndpoints(orm: Orm, after: string, limit: number): Promise<EndpointRow[]> {
  return pageAfter(orm, { after, limit }).for('update').execute();
}

interface EndpointPage {
  after: string;
  limit: number;
  /** Only those that fail, or were disabled because they failed. */
  failing?: boolean | undefined;
  /** Only those that it created. */
  owner?: string | undefined;
}

export function listEndpoints(orm: Orm, page: EndpointPage): Promise<EndpointRow[]> {
  return pageAfter(orm, page).execute();
}

function isFailing(orm: Orm) {
  const ids = orm.select({ id: endpointHealth.endpointId }).from(endpointHealth);
  return or(
    and(
      eq(endpoints.state, 'enabled'),
      inArray(endpoints.id, ids.where(gt(endpointHealth.consecutiveFailures, 0))),
    ),
    and(eq(endpoints.state, 'disabled'), inArray(endpoints.stateReason, ['failing', 'gone'])),
  );
}

/** Endpoints that fail, or were disabled because they failed. */
export async function countFailing({ orm }: Pick<Queryable, 'orm'>): Promise<number> {
  const query = orm.select({ n: count() }).from(endpoints);
  const rows = await query.where(and(isLive, isFailing(orm)));
  return Number(rows[0]?.n ?? 0);
}

/** Whether the body of an event passes a filter, as where deliveries are made. */
export async function passesFilter(
  { sql }: Queryable,
  body: string,
  filter: Json,
): Promise<boolean> {
  const rows = await sql<{ passes: boolean }[]>`
    select coalesce(
      tallyhook.matches_filter(tallyhook.document_of(${body}), ${asJson(filter)}::jsonb), true)
      as passes`;
  return rows[0]?.passes === true;
}

/** The endpoints that are not deleted, by state. */
export async function countEndpointStates({ sql }: Queryable) {
  return sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from tallyhook.endpoints
    where deleted_at is null group by state`;
}

function pageAfter(orm: Orm, { after, limit, failing, owner }: EndpointPage) {
  const page = orm.select(COLUMNS).from(endpoints);
  const rest = page.where(
    and(
      isLive,
      gt(endpoints.id, after),
      failing ? isFailing(orm) : undefined,
      owner === undefined ? undefined : eq(endpoints.createdBy, owner),
    ),
  );
  return rest.orderBy(asc(endpoints.id)).limit(limit);
}

/** @param owner counts only those that it created */
export async function countEndpoints(orm: Orm, owner?: string): Promise<number> {
  const isOwn = owner === undefined ? undefined : eq(endpoints.createdBy, owner);
  const rows = await orm.select({ n: count() }).from(endpoints).where(and(isLive, isOwn));
  return Number(rows[0]?.n ?? 0);
}

export async function updateEndpoint(
  orm: Orm,
  id: string,
  patch: Partial<Omit<EndpointRow, 'id' | 'createdAt' | 'createdBy'>>,
): Promise<void> {
  await orm.update(endpoints).set(patch).where(isLiveWith(id));
}

/** Marks an endpoint deleted and erases its secrets; false when there is none. */
export async function deleteEndpoint(orm: Orm, id: string, now: Instant): Promise<boolean> {
  const rows = await orm
    .update(endpoints)
    .set({
      deletedAt: now,
      state: 'disabled',
      stateReason: 'deleted',
      stateAt: now,
      encryptedSecrets: '',
      encryptedHeaders: null,
      encryptedDestination: null,
      encryptedAuth: null,
      publicKey: null,
    })
    .where(isLiveWith(id))
    .returning({ id: endpoints.id });
  return rows.length > 0;
}

/**
 * Removes at most `limit` endpoints that were deleted before and have nothing to deliver; returns
 * their ids.
 */
export async function removeDeleted(tx: Tx, before: Instant, limit: number): Promise<string[]> {
  const rows = await tx.sql<{ id: string }[]>`
    with removed as (
      delete from tallyhook.endpoint_health h where h.endpoint_id = any(array(
        select p.id from tallyhook.endpoints p
        where p.deleted_at < ${isoText(before)} and not exists (
          select from tallyhook.pending_deliveries d
          where d.endpoint_id = substr(p.id, 4)::uuid)
        limit ${limit}))
      returning h.endpoint_id
    )
    delete from tallyhook.endpoints p using removed r where p.id = r.endpoint_id returning p.id`;
  return rows.map(({ id }) => id);
}

export async function disableEndpoint(
  orm: Orm,
  id: string,
  reason: string,
  now: Instant,
): Promise<boolean> {
  const rows = await orm
    .update(endpoints)
    .set({ state: 'disabled', stateReason: reason, stateAt: now })
    .where(and(isLiveWith(id), eq(endpoints.state, 'enabled')))
    .returning({ id: endpoints.id });
  return rows.length > 0;
}

/** The health of each of these endpoints, by id. */
export async function findHealths(
  orm: Orm,
  endpointIds: readonly string[],
): Promise<Map<string, Health>> {
  const isOne = inArray(endpointHealth.endpointId, [...endpointIds]);
  const columns = { ...HEALTH_COLUMNS, endpointId: endpointHealth.endpointId };
  const rows = await orm.select(columns).from(endpointHealth).where(isOne);
  return new Map(rows.map(({ endpointId, ...health }) => [endpointId, health]));
}

export async function findHealth(orm: Orm, endpointId: string): Promise<Health | undefined> {
  const isIts = eq(endpointHealth.endpointId, endpointId);
  const rows = await orm.select(HEALTH_COLUMNS).from(endpointHealth).where(isIts).limit(1);
  return rows[0];
}

/** The deliveries that `skipBefore` names are cancelled. */
export async function endSkip(orm: Orm, id: string): Promise<void> {
  await orm.update(endpoints).set({ skipBefore: null }).where(eq(endpoints.id, id));
}

/**
 * Locks the endpoints' health rows in id order and reads them, by endpoint id. To be called before
 * the endpoints are locked.
 */
export async function lockHealths(
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

export interface HealthUpdate extends Health {
  /** Its circuit was open. */
  recovered: boolean;
}

export async function saveHealths(
  tx: Tx,
  healths: ReadonlyMap<string, HealthUpdate>,
  now: Instant,
): Promise<void> {
  if (healths.size === 0) return;
  const rows = [...healths].map(([id, health]) => ({
    id,
    failures: health.consecutiveFailures,
    failing_since: isoTextOrNull(health.failingSince),
    paused_until: isoTextOrNull(health.pausedUntil),
    last_success_at: isoTextOrNull(health.lastSuccessAt),
    recovered: health.recovered,
  }));
  await tx.sql`
    update tallyhook.endpoint_health h set consecutive_failures = x.failures,
      failing_since = x.failing_since, paused_until = x.paused_until,
      last_success_at = greatest(h.last_success_at, x.last_success_at),
      probe_requested = h.probe_requested and x.paused_until is not null,
      recovered_at = case when x.recovered then ${isoText(now)}
        when x.paused_until is null then h.recovered_at end
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, failures int,
      failing_since timestamptz, paused_until timestamptz, last_success_at timestamptz,
      recovered boolean)
    where h.endpoint_id = x.id`;
}

/** Resets failures and pause, as when it recovers; keeps `lastSuccessAt`. */
export async function resetHealth(orm: Orm, endpointId: string, now: Instant): Promise<void> {
  const { lastSuccessAt: _, ...healthy } = HEALTHY;
  const reset = { ...healthy, probeRequested: false, recoveredAt: now };
  await orm.update(endpointHealth).set(reset).where(eq(endpointHealth.endpointId, endpointId));
}

export async function listPublicKeys(
  orm: Orm,
  limit: number,
): Promise<{ endpointId: string; publicKey: string }[]> {
  const rows = await orm
    .select({ endpointId: endpoints.id, publicKey: endpoints.publicKey })
    .from(endpoints)
    .where(and(isLive, isNotNull(endpoints.publicKey)))
    .orderBy(asc(endpoints.id))
    .limit(limit);
  return rows.flatMap(({ endpointId, publicKey }) =>
    publicKey === null ? [] : [{ endpointId, publicKey }],
  );
}
