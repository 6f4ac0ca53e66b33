/** SQL of counts and sums over drifts. Positive and negative amounts are never netted. */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Cause, driftSummary } from '../../resources/drift.ts';
import type { Row } from '../../resources/resource.ts';

type Summary = Row<typeof driftSummary>;
type Sums = Omit<Summary['byAge'][number], 'order' | 'bucket'>;

/** Unclosed drifts by cause and age, and how long the ended ones took. */
export async function summarizeDrifts(
  db: Queryable,
  now: Instant,
  endedSince: Instant,
): Promise<Summary> {
  const [groups, ended] = await Promise.all([listGroups(db, now), countEnded(db, endedSince)]);
  return {
    byCause: groups.flatMap(({ cause, bucket: _, order: __, ...sums }) =>
      cause === null ? [] : [{ ...sums, cause }],
    ),
    byAge: groups.flatMap(({ cause: _, bucket, order, ...sums }) =>
      bucket === null || order === null ? [] : [{ ...sums, bucket, order }],
    ),
    ended: { since: endedSince, ...ended },
  };
}

export interface OpenDrifts {
  open: number;
  unassigned: number;
  proposed: number;
  /** When the first of them was first observed. */
  oldestAt: Instant | null;
}

/** Counted up to `max`. */
export async function countOpenDrifts({ sql }: Queryable, max: number): Promise<OpenDrifts> {
  const rows = await sql<OpenDrifts[]>`
    select count(*)::int as open, (count(*) filter (where assignee is null))::int as unassigned,
      (count(*) filter (where state = 'proposed'))::int as proposed,
      min(suspected_at) as oldest_at
    from (select assignee, state, suspected_at from tallyhook.drifts where closed_at is null
      limit ${max}) d`;
  return rows[0] ?? { open: 0, unassigned: 0, proposed: 0, oldestAt: null };
}

/** Drifts whose amount is not exact yet are counted, and add nothing to the sums. */
type Group = Sums & { cause: Cause | null; bucket: string | null; order: number | null };

async function listGroups({ sql }: Queryable, now: Instant): Promise<Group[]> {
  return sql<Group[]>`
    select d.cause, b.bucket, b.bucket_order as "order", count(*)::int as drifts,
      (count(*) filter (where c.id is null or d.id < c.id))::int as findings,
      coalesce(sum(d.amount) filter (where d.amount > 0), 0) as up,
      coalesce(sum(d.amount) filter (where d.amount < 0), 0) as down
    from tallyhook.drifts d
    join tallyhook.age_buckets b on b.from_age <= ${isoText(now)}::timestamptz - d.suspected_at
      and b.to_age > ${isoText(now)}::timestamptz - d.suspected_at
    left join tallyhook.drifts c on c.id = d.counterpart and c.closed_at is null
    where d.closed_at is null
    group by grouping sets ((d.cause), (b.bucket, b.bucket_order))
    order by d.cause nulls last, b.bucket_order`;
}

const ENDED_MAX = 10_000;

/** The drifts that ended since then, at most the last 10,000, and their median time to the end. */
export async function countEnded(
  { sql }: Queryable,
  since: Instant,
): Promise<Omit<Summary['ended'], 'since'>> {
  const rows = await sql<Omit<Summary['ended'], 'since'>[]>`
    select count(*)::int as drifts, round((percentile_cont(0.5) within group
      (order by extract(epoch from closed_at - suspected_at)))::numeric, 3)::float8 as median_s
    from (select closed_at, suspected_at from tallyhook.drifts
      where closed_at >= ${isoText(since)} order by closed_at desc limit ${ENDED_MAX}) d`;
  return rows[0] ?? { drifts: 0, medianS: null };
}
