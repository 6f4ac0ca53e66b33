/** Waits for a condition by checking it repeatedly, with a deadline. */
import { pause } from '../../src/kernel/clock.ts';

/**
 * Checks until something is found. The interval grows, so that a remote service is not overloaded.
 * @returns undefined when the deadline passed first
 */
export async function until<T>(
  check: () => Promise<T | undefined>,
  { deadlineMs = 60_000, everyMs = 20 } = {},
): Promise<T | undefined> {
  const started = performance.now();
  for (let gapMs = everyMs; ; gapMs = Math.min(gapMs * 1.3, 1_000)) {
    const found = await check();
    if (found !== undefined || performance.now() - started + gapMs > deadlineMs) return found;
    await pause(gapMs);
  }
}
