/** The ranges of plots: the last hour, day or month, divided into steps of equal length. */
import { z } from '@hono/zod-openapi';
import type { Instant } from '../../kernel/clock.ts';

/** Length and step of each range, in milliseconds. */
const RANGES = {
  hour: { lengthMs: 3_600_000, stepMs: 60_000 },
  day: { lengthMs: 86_400_000, stepMs: 900_000 },
  month: { lengthMs: 30 * 86_400_000, stepMs: 21_600_000 },
};

/** The query of a plot. */
export const rangeQuery = z.strictObject({
  range: z.enum(['hour', 'day', 'month']).default('hour'),
});

/** Steps begin at multiples of their length, so that only the last one is partial. */
export function stepsOf(range: keyof typeof RANGES, now: Instant) {
  const { lengthMs, stepMs } = RANGES[range];
  const since = Math.ceil((now - lengthMs) / stepMs) * stepMs;
  return { since, stepMs, stepS: stepMs / 1_000, steps: lengthMs / stepMs };
}
