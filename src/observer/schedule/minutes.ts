/** The use of the budget and the delay of polls, a row per minute of the last month. */
import type { Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { pollStep } from '../../resources/admin/activity.ts';
import type { Row } from '../../resources/resource.ts';
import type { BudgetView } from '../../upstream/upstream.ts';
import type { Pricing } from './pricing.ts';

/** Each call adds the requests of this daemon since the last one. */
export function makeSamples(
  db: Queryable,
  budget: Pick<BudgetView, 'requests' | 'bounds'>,
  pricing: () => Promise<Pricing>,
) {
  let sampled = 0;
  return async (now: Instant): Promise<void> => {
    const { delay, oldestPollAt } = await pricing();
    const requests = budget.requests();
    await addToMinute(db, now, {
      requests: requests - sampled,
      allowedPerS: budget.bounds().effective,
      expectedDelayMs: delay?.expectedMs ?? null,
      oldestPollMs: oldestPollAt === null ? null : Math.max(0, now - oldestPollAt),
    });
    sampled = requests;
  };
}

/** What a daemon adds to a minute. */
interface MinuteSample {
  /** Since its last sample. */
  requests: number;
  allowedPerS: number;
  expectedDelayMs: number | null;
  oldestPollMs: number | null;
}

async function addToMinute(
  { sql }: Queryable,
  now: Instant,
  { requests, allowedPerS, expectedDelayMs, oldestPollMs }: MinuteSample,
): Promise<void> {
  await sql`
    insert into tallyhook.poll_minutes as m
      (at, requests, allowed_per_s, expected_delay_ms, oldest_poll_ms)
    values (date_trunc('minute', ${isoText(now)}::timestamptz), ${requests}, ${allowedPerS},
      ${expectedDelayMs}, ${oldestPollMs})
    on conflict (at) do update set requests = m.requests + excluded.requests,
      allowed_per_s = excluded.allowed_per_s, expected_delay_ms = excluded.expected_delay_ms,
      oldest_poll_ms = greatest(m.oldest_poll_ms, excluded.oldest_poll_ms)`;
}

/**
 * Whole minutes since then, in steps of so many milliseconds; a step in which no daemon ran is left
 * out.
 */
export async function listPollActivity(
  { sql }: Queryable,
  since: Instant,
  stepMs: number,
  now: Instant,
): Promise<Row<typeof pollStep>[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  return sql<Row<typeof pollStep>[]>`
    select date_bin(make_interval(secs => ${stepMs / 1000}), at, ${from}) as at,
      (avg(requests) / 60)::float8 as requests_per_s, avg(allowed_per_s) as allowed_per_s,
      avg(expected_delay_ms) as expected_delay_ms, max(oldest_poll_ms) as oldest_poll_ms
    from tallyhook.poll_minutes
    where at >= ${from} and at < date_trunc('minute', ${isoText(now)}::timestamptz)
    group by 1 order by 1`;
}

/** Deletes the minutes before. */
export async function deletePollMinutes({ sql }: Queryable, before: Instant): Promise<void> {
  await sql`delete from tallyhook.poll_minutes where at < ${isoText(before)}`;
}
