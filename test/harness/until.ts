/** Waiting for what can only be asked for: looks again and again, with a deadline. */
import { pause } from '../../src/kernel/clock.ts';

/**
 * Looks until something is seen. The gap between looks grows, so that a service far away is not
 * pressed.
 * @returns undefined when the deadline passed first
 */
export async function until<T>(
  observation: () => Promise<T | undefined>,
  { deadlineMs = 8_000, everyMs = 20 } = {},
): Promise<T | undefined> {
  const started = performance.now();
  for (let gapMs = everyMs; ; gapMs = Math.min(gapMs * 1.3, 1_000)) {
    const seen = await observation();
    if (seen !== undefined || performance.now() - started + gapMs > deadlineMs) return seen;
    await pause(gapMs);
  }
}
