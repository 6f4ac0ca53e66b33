/** SQL of the endpoints, as simple rows; what is sealed goes in and out sealed. */
import { and, asc, count, eq, gt, isNotNull, isNull } from 'drizzle-orm';
import type { Orm } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { HEALTHY, type Health } from '../delivery/health.ts';
import { endpointHealth, endpoints } from '../tables.ts';

export interface EndpointRow {
  id: string;
  url: string;
  description: string | null;
  eventTypes: string[];
  ordering: string;
  signing: string[];
  encryptedSecrets: string;
  encryptedHeaders: string | null;
  publicKey: string | null;
  ratePerS: number | null;
  state: string;
  stateReason: string | null;
  stateAt: Instant;
  createdBy: string;
  createdAt: Instant;
}

const COLUMNS = {
  id: endpoints.id,
  url: endpoints.url,
  description: endpoints.description,
  eventTypes: endpoints.eventTypes,
  ordering: endpoints.ordering,
  signing: endpoints.signing,
  encryptedSecrets: endpoints.encryptedSecrets,
  encryptedHeaders: endpoints.encryptedHeaders,
  publicKey: endpoints.publicKey,
  ratePerS: endpoints.ratePerS,
  state: endpoints.state,
  stateReason: endpoints.stateReason,
  stateAt: endpoints.stateAt,
  createdBy: endpoints.createdBy,
  createdAt: endpoints.createdAt,
};

const HEALTH_COLUMNS = {
  consecutiveFailures: endpointHealth.consecutiveFailures,
  failingSince: endpointHealth.failingSince,
  holdUntil: endpointHealth.holdUntil,
  lastSuccessAt: endpointHealth.lastSuccessAt,
};

const alive = isNull(endpoints.deletedAt);

/** Inserts an endpoint and the row of its health. To be called in a transaction. */
export async function insertEndpoint(orm: Orm, row: EndpointRow): Promise<void> {
  await orm.insert(endpoints).values(row);
  await orm.insert(endpointHealth).values({ endpointId: row.id, ...HEALTHY });
}

/** Undefined when there is none, or it was deleted. */
export async function findEndpoint(orm: Orm, id: string): Promise<EndpointRow | undefined> {
  const wanted = and(eq(endpoints.id, id), alive);
  const rows = await orm.select(COLUMNS).from(endpoints).where(wanted).limit(1);
  return rows[0];
}

/** As `findEndpoint`, and nobody else changes it before this transaction ends. */
export async function lockEndpoint(orm: Orm, id: string): Promise<EndpointRow | undefined> {
  const wanted = and(eq(endpoints.id, id), alive);
  const rows = await orm.select(COLUMNS).from(endpoints).where(wanted).limit(1).for('update');
  return rows[0];
}

/** In order of creation, after the id `after` (the empty text: from the first). */
export async function listEndpoints(
  orm: Orm,
  after: string,
  limit: number,
): Promise<EndpointRow[]> {
  const wanted = and(alive, gt(endpoints.id, after));
  return orm.select(COLUMNS).from(endpoints).where(wanted).orderBy(asc(endpoints.id)).limit(limit);
}

export async function countEndpoints(orm: Orm): Promise<number> {
  const rows = await orm.select({ n: count() }).from(endpoints).where(alive);
  return Number(rows[0]?.n ?? 0);
}

export async function updateEndpoint(
  orm: Orm,
  id: string,
  patch: Partial<Omit<EndpointRow, 'id' | 'createdAt' | 'createdBy'>>,
): Promise<void> {
  await orm
    .update(endpoints)
    .set(patch)
    .where(and(eq(endpoints.id, id), alive));
}

/** Marks an endpoint deleted and forgets what was sealed for it; false when there was none. */
export async function deleteEndpoint(orm: Orm, id: string, now: Instant): Promise<boolean> {
  const rows = await orm
    .update(endpoints)
    .set({
      ...{ deletedAt: now, state: 'disabled', stateReason: 'deleted', stateAt: now },
      ...{ encryptedSecrets: '', encryptedHeaders: null, publicKey: null },
    })
    .where(and(eq(endpoints.id, id), alive))
    .returning({ id: endpoints.id });
  return rows.length > 0;
}

export async function findHealth(orm: Orm, endpointId: string): Promise<Health | undefined> {
  const wanted = eq(endpointHealth.endpointId, endpointId);
  const rows = await orm.select(HEALTH_COLUMNS).from(endpointHealth).where(wanted).limit(1);
  return rows[0];
}

/** Forgets the failures of an endpoint; when it last took something is kept. */
export async function resetHealth(orm: Orm, endpointId: string): Promise<void> {
  const { lastSuccessAt: _, ...well } = HEALTHY;
  await orm.update(endpointHealth).set(well).where(eq(endpointHealth.endpointId, endpointId));
}

/** The public keys of all endpoints that have one, in order of their ids. */
export async function listPublicKeys(
  orm: Orm,
  limit: number,
): Promise<{ endpointId: string; publicKey: string }[]> {
  const rows = await orm
    .select({ endpointId: endpoints.id, publicKey: endpoints.publicKey })
    .from(endpoints)
    .where(and(alive, isNotNull(endpoints.publicKey)))
    .orderBy(asc(endpoints.id))
    .limit(limit);
  return rows.flatMap(({ endpointId, publicKey }) =>
    publicKey === null ? [] : [{ endpointId, publicKey }],
  );
}
