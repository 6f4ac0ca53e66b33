/** SQL of what the gateway did over time, for plots. */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { writeStep } from '../../resources/activity.ts';
import type { Row } from '../../resources/resource.ts';

/** Writes since then, in steps of so many milliseconds; a step without any is left out. */
export async function listWriteActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
): Promise<Row<typeof writeStep>[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<Row<typeof writeStep>[]>`
    select date_bin(make_interval(secs => ${stepMs / 1000}), recorded_at, ${from}) as at,
      count(*)::int as writes,
      count(*) filter (where outcome = 'not_executed')::int as not_executed,
      count(*) filter (where outcome = 'open')::int as open,
      percentile_disc(0.95) within group (order by
        extract(epoch from answered_at - sent_at)::float8 * 1000) as answer_p95_ms
    from tallyhook.operations
    where source = 'gateway' and recorded_at >= ${from}
    group by 1 order by 1`;
}
