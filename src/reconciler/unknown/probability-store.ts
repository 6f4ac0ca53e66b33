/** SQL of past resolutions of unknown operations, newest first and bounded. */
import type { Queryable } from '../../db/connect.ts';
import type { ResolutionCount } from './probability.ts';

const TRANSITIONS_MAX = 20_000;

/** The newest resolutions by evidence, counted by the cause of the unknown outcome. */
export async function countResolutions(db: Queryable): Promise<ResolutionCount[]> {
  return db.sql<ResolutionCount[]>`
    with recent as materialized (
      select operation_id, to_state, evidence from tallyhook.transitions
      order by id desc limit ${TRANSITIONS_MAX}
    ), resolved as (
      select r.operation_id, r.to_state, r.evidence, u.cause from recent r
      cross join lateral (
        select case when t.cause like '% %' then 'abandoned' else t.cause end as cause
        from tallyhook.transitions t
        where t.operation_id = r.operation_id and t.to_state = 'unknown' order by t.id limit 1) u
      where r.to_state in ('executed', 'not_executed') and jsonb_exists(r.evidence, 'basis')
    )
    select cause, (count(*) filter (where to_state = 'executed'))::int as executed,
      count(*)::int as resolved, count(evidence->>'shown_after_ms')::int as shown,
      coalesce(sum((evidence->>'shown_after_ms')::float8), 0)::float8 as "delayMs"
    from resolved group by cause order by cause`;
}
