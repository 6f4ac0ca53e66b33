/** SQL of what the gateway did over time, for plots. */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

/** Writes recorded in one step of time. */
export interface WriteActivity {
  /** Start of the step. */
  at: Instant;
  writes: number;
  /** Writes without effect at the service, and writes whose outcome is open or undecided. */
  notExecuted: number;
  open: number;
  /** How long the service took to answer, in milliseconds: the 95th of a hundred. */
  answerP95Ms: number | null;
}

/** Writes since then, in steps of so many milliseconds; a step without any is left out. */
export async function listWriteActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
): Promise<WriteActivity[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<WriteActivity[]>`
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
