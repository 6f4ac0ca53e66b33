/** The ranges of plots: the last hour, day or month, divided into steps of equal length. */
import { z } from '@hono/zod-openapi';
import type { Instant } from '../../kernel/clock.ts';
import { instant, instantText } from './fields.ts';

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

/** What a plot says of its steps. */
export const stepFields = {
  since: instant,
  step_s: z.int().openapi({ description: 'Length of a step; a step without any row is left out' }),
  steps: z.int().openapi({ description: 'From `since` until now' }),
};

/** Steps begin at multiples of their length, so that only the last one is partial. */
export function stepsOf(range: keyof typeof RANGES, now: Instant) {
  const { lengthMs, stepMs } = RANGES[range];
  const since = Math.ceil((now - lengthMs) / stepMs) * stepMs;
  const fields = { since: instantText(since), step_s: stepMs / 1_000, steps: lengthMs / stepMs };
  return { since, stepMs, fields };
}
