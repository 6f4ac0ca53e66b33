/** SQL of what is quarantined, and of releases. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';

export const QUARANTINE_KINDS = [
  'operation',
  'posting_request',
  'observed_holder',
  'observation',
] as const;
export type QuarantineKind = (typeof QUARANTINE_KINDS)[number];

/** The place of a quarantined thing in the list. */
export interface QuarantineCursor {
  since: Instant;
  kind: QuarantineKind;
  /** Of an operation or posting request, or the target of an observation. */
  id: string;
}

export interface Quarantined extends QuarantineCursor {
  reason: string;
  /** What is not posted; null for an observation or an NFT write. */
  amount: bigint | null;
}

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

/** A release by a person. */
export interface Release {
  id: bigint;
  kind: QuarantineKind;
  /** The id of what was released, or its target. */
  subject: string;
  /** Why it was quarantined. */
  problem: string;
  releasedAt: Instant;
  releasedBy: string;
  releasedKey: string;
  reason: string;
}

export async function insertRelease(tx: Tx, release: Omit<Release, 'id'>): Promise<Release> {
  const rows = await tx.sql<{ id: bigint }[]>`
    insert into tallyhook.quarantine_releases (kind, subject, problem, released_at, released_by,
      released_key, reason)
    values (${release.kind}, ${release.subject}, ${release.problem},
      ${isoText(release.releasedAt)}, ${release.releasedBy}, ${release.releasedKey},
      ${release.reason})
    returning id`;
  return { ...release, id: must(rows[0], 'release').id };
}

/** Releases before an id, newest first. */
export async function listReleases(
  { sql }: Queryable,
  { before, limit }: { before: bigint | undefined; limit: number },
): Promise<Release[]> {
  return sql<Release[]>`
    select id, kind, subject, problem, released_at, released_by, released_key, reason
    from tallyhook.quarantine_releases
    where ${before === undefined ? sql`true` : sql`id < ${before.toString()}::bigint`}
    order by id desc limit ${limit}`;
}
