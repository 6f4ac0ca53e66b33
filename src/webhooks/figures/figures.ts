/**
 * Figures of attempts over time, summed from the minutes (attempt-minutes.ts). A minute has how
 * long its attempts took as a histogram, whose sums give the percentiles of any time.
 */
import type { Db, Queryable } from '../../db/connect.ts';
import { DAY_MS, HOUR_MS, type Instant, isoText, MINUTE_MS } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { FigureStep, figures } from '../../resources/delivery/figures.ts';
import type { Row } from '../../resources/resource.ts';

type Figures = Row<typeof figures>;
type Counts = NonNullable<Figures['total']>;

export interface FiguresRequest {
  /** Of all endpoints without it. */
  endpointId?: string | undefined;
  type?: string | undefined;
  step: FigureStep;
  /** By default an hour, a day or thirty days before `until`. */
  since?: Instant | undefined;
  /** By default the present. */
  until?: Instant | undefined;
}

/** Each step with its default range and its longest. */
const STEPS = {
  minute: { stepMs: MINUTE_MS, rangeMs: HOUR_MS, maxMs: DAY_MS, longest: 'a day' },
  hour: { stepMs: HOUR_MS, rangeMs: DAY_MS, maxMs: 30 * DAY_MS, longest: '30 days' },
  day: { stepMs: DAY_MS, rangeMs: 30 * DAY_MS, maxMs: 30 * DAY_MS, longest: '30 days' },
};
/** Of the minutes; they are deleted a day later. */
export const KEPT_MS = 30 * DAY_MS;

/** The endpoint of the minutes that are of all endpoints. */
export const ALL_ENDPOINTS = '';

/**
 * Durations above 2^((n-1)/2) and up to 2^(n/2) milliseconds are in the n-th of these; the last one
 * has a minute and more.
 */
const BUCKETS = Array.from({ length: 33 }, (_, n) => n);
const LAST = BUCKETS.length - 1;

/** The bucket of `duration_ms`. */
export function bucketOf({ sql }: Pick<Queryable, 'sql'>) {
  return sql`
    least(${LAST}, ceil(2 * ln(greatest(duration_ms, 1)::float8) / ln(2::float8) - 1e-9))::int`;
}

/** The histogram of rows that have `n` attempts of a `bucket`. */
export function histogramOf({ sql }: Pick<Queryable, 'sql'>) {
  const counts = BUCKETS.map(
    (bucket) => sql`coalesce(sum(n) filter (where bucket = ${bucket}), 0)::int`,
  );
  return sql`array[${counts.reduce((all, each) => sql`${all}, ${each}`)}]`;
}

/**
 * Of at most 30 days and 1,440 steps, and of one endpoint or the sums of all, so its cost is that
 * of the minutes of one.
 * @throws Failure `invalid_request`
 */
export async function readFigures(
  db: Pick<Db, 'sql'>,
  request: FiguresRequest,
  now: Instant,
): Promise<Figures> {
  const { endpointId = null, type = null, step } = request;
  const { since, until } = rangeOf(request, now);
  const rows = await listSums(db, request, { since, until });
  const total = rows.find(({ at, eventType }) => at === null && eventType === null);
  return {
    endpointId,
    type,
    step,
    since,
    until,
    total: total ? countsOf(total) : null,
    steps: rows.flatMap((row) => (row.at === null ? [] : [{ at: row.at, ...countsOf(row) }])),
    types: rows.flatMap((row) =>
      row.eventType === null ? [] : [{ type: row.eventType, ...countsOf(row) }],
    ),
  };
}

function rangeOf(request: FiguresRequest, now: Instant): { since: Instant; until: Instant } {
  const { stepMs, rangeMs, maxMs, longest } = STEPS[request.step];
  const until = Math.min(request.until ?? now, now);
  const from = request.since ?? Math.max(until - rangeMs, now - KEPT_MS);
  if (from >= until)
    throw new Failure('invalid_request', 'since must be before until, and in the past');
  if (until - from > maxMs)
    throw new Failure(
      'invalid_request',
      `since may be at most ${longest} before until with the step ${request.step}`,
    );
  if (from < now - KEPT_MS)
    throw new Failure('invalid_request', 'since must be within the last 30 days, which are kept');
  return { since: Math.floor(from / stepMs) * stepMs, until };
}

interface Sums {
  /** Of a step, or of a type, or of neither. */
  at: Instant | null;
  eventType: string | null;
  delivered: number;
  failed: number;
  durationMs: number;
  slowestMs: number;
  /** JSON. */
  latencies: string;
}

function listSums(
  { sql }: Pick<Db, 'sql'>,
  { endpointId = ALL_ENDPOINTS, type, step }: FiguresRequest,
  { since, until }: { since: Instant; until: Instant },
): Promise<Sums[]> {
  const from = sql`${isoText(since)}::timestamptz`;
  const seconds = STEPS[step].stepMs / 1_000;
  const sums = BUCKETS.map((bucket) => sql`sum(latencies[${bucket + 1}])::float8`);
  return sql<Sums[]>`
    select at, event_type, sum(delivered)::float8 as delivered, sum(failed)::float8 as failed,
      sum(duration_ms)::float8 as duration_ms, max(slowest_ms) as slowest_ms,
      json_build_array(${sums.reduce((all, each) => sql`${all}, ${each}`)})::text as latencies
    from (
      select date_bin(make_interval(secs => ${seconds}), at, ${from}) as at, event_type, delivered,
        failed, duration_ms, slowest_ms, latencies
      from tallyhook.attempt_figures
      where endpoint_id = ${endpointId} and at >= ${from} and at < ${isoText(until)}
        ${type === undefined ? sql`` : sql`and event_type = ${type}`}) m
    group by grouping sets ((at), (event_type), ())
    having count(*) > 0
    order by at, event_type`;
}

function countsOf({ delivered, failed, durationMs, slowestMs, latencies }: Sums): Counts {
  const histogram = JSON.parse(latencies) as number[];
  const attempts = delivered + failed;
  return {
    delivered,
    failed,
    successRate: delivered / attempts,
    meanMs: durationMs / attempts,
    p50Ms: percentileOf(histogram, slowestMs, 0.5),
    p95Ms: percentileOf(histogram, slowestMs, 0.95),
    slowestMs,
  };
}

/**
 * The duration that this part of the attempts did not exceed. Within its bucket, whose upper bound
 * is 1.4 times the lower one, durations count as spread evenly.
 */
export function percentileOf(
  histogram: readonly number[],
  slowestMs: number,
  part: number,
): number {
  const rank = part * histogram.reduce((sum, n) => sum + n, 0);
  let below = 0;
  for (const [bucket, n] of histogram.entries()) {
    if (n > 0 && below + n >= rank) {
      const lower = Math.min(slowestMs, bucket === 0 ? 1 : 2 ** ((bucket - 1) / 2));
      const upper = bucket === LAST ? slowestMs : Math.min(slowestMs, 2 ** (bucket / 2));
      return lower + (upper - lower) * ((rank - below) / n);
    }
    below += n;
  }
  return slowestMs;
}
