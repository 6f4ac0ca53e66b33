/**
 * What is quarantined, of the ledger and of the reconciler, and its release by a person: it is
 * tried again, and the release is recorded in the same commit.
 */
import type { Db, Queryable, Sql } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import { releasePosting } from '../ledger/ledger.ts';
import { releaseObservation } from '../observer/observer.ts';
import type { QuarantineKind, quarantined, release } from '../resources/operations/quarantine.ts';
import type { Row } from '../resources/resource.ts';

type Quarantined = Row<typeof quarantined>;
type Release = Row<typeof release>;

/** The place of a quarantined thing in the list. */
export type QuarantineCursor = Pick<Quarantined, 'since' | 'kind' | 'id'>;

/** Everything quarantined after a cursor, newest first. */
export async function listQuarantined(
  { sql }: Queryable,
  { after, limit }: { after: QuarantineCursor | undefined; limit: number },
): Promise<Quarantined[]> {
  const { since, kind, id } = after ?? { since: 0, kind: '', id: '' };
  const cursor = sql`(${isoText(since)}::timestamptz, ${kind}::text, ${id}::text)`;
  const page = after
    ? sql`where (x.since, x.kind, x.id) < ${cursor} order by 1 desc, 2 desc, 3 desc limit ${limit}`
    : sql`order by 1 desc, 2 desc, 3 desc limit ${limit}`;
  return sql<Quarantined[]>`
    select since, kind, id, reason, amount from (
      (select since, kind, id, reason, amount from (
        select d.quarantined_at as since, 'operation' as kind, d.operation_id as id,
          d.quarantine_reason as reason, o.amount
        from tallyhook.due_postings d join tallyhook.operations o on o.id = d.operation_id
        where d.quarantined_at is not null and d.quarantine_reason is not null) x ${page})
      union all
      (select since, kind, id, reason, amount from (
        select requested_at as since, 'posting_request' as kind, id, problem as reason, amount
        from tallyhook.posting_requests where posted_at is null and problem is not null) x ${page})
      union all
      (select since, kind, id, reason, amount from (
        select requested_at as since, 'observed_holder' as kind, id::text as id,
          problem as reason, null::numeric as amount
        from tallyhook.observed_holders where problem is not null) x ${page})
      union all
      (select since, kind, id, reason, amount from (
        select process_at as since, 'observation' as kind, target as id, problem as reason,
          null::numeric as amount
        from tallyhook.unprocessed_observations where problem is not null) x ${page})
    ) x order by since desc, kind desc, id desc limit ${limit}`;
}

/** How many of each kind are quarantined, counted up to `max`. */
export async function countQuarantined(
  { sql }: Queryable,
  max: number,
): Promise<Record<QuarantineKind, number>> {
  const rows = await sql<{ counts: Record<QuarantineKind, number> }[]>`
    select jsonb_build_object(
      'operation', (select count(*) from (select from tallyhook.due_postings
        where quarantined_at is not null and quarantine_reason is not null limit ${max}) x),
      'posting_request', (select count(*) from (select from tallyhook.posting_requests
        where posted_at is null and problem is not null limit ${max}) x),
      'observed_holder', (select count(*) from (select from tallyhook.observed_holders
        where problem is not null limit ${max}) x),
      'observation', (select count(*) from (select from tallyhook.unprocessed_observations
        where problem is not null limit ${max}) x)) as counts`;
  return must(rows[0], 'counts').counts;
}

/**
 * Releases one posting or observation: the ledger posts it, even with the number of another app, or
 * the reconciler processes it. What still cannot be processed is quarantined again.
 * @throws Failure `not_found` when it is not quarantined
 */
export function releaseQuarantined(
  db: Db,
  { kind, id, reason }: { kind: QuarantineKind; id: string; reason: string },
  by: { owner: string; keyId: string },
  at: Instant,
): Promise<Release> {
  return db.begin(async (tx) => {
    const problem =
      kind === 'observation'
        ? await releaseObservation(tx, id, at)
        : await releasePosting(tx, kind, id);
    if (problem === undefined)
      throw new Failure('not_found', `no quarantined ${kind} ${id}; see GET /api/quarantine`);
    const rows = await tx.sql<Release[]>`
      insert into tallyhook.quarantine_releases (kind, subject, problem, released_at, released_by,
        released_key, reason)
      values (${kind}, ${id}, ${problem}, ${isoText(at)}, ${by.owner}, ${by.keyId}, ${reason})
      returning ${releaseColumns(tx.sql)}`;
    return must(rows[0], 'release');
  });
}

function releaseColumns(sql: Sql) {
  return sql`id as n, kind, subject as id, problem, released_at, released_by, reason`;
}

/** Releases before an id, newest first. */
export async function listReleases(
  { sql }: Queryable,
  { before, limit }: { before: bigint | undefined; limit: number },
): Promise<Release[]> {
  return sql<Release[]>`
    select ${releaseColumns(sql)}
    from tallyhook.quarantine_releases
    where ${before === undefined ? sql`true` : sql`id < ${before.toString()}::bigint`}
    order by n desc limit ${limit}`;
}
