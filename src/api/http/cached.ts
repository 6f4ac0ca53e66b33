/** Answers of routes without a key, so that a flood of requests costs one answer per second. */
import { monotonicMs } from '../../kernel/clock.ts';

const TTL_MS = 1_000;

/** The result or error of `load` for a second; requests at the same time share one call. */
export function cachedForASecond<T>(load: () => Promise<T>): () => Promise<T> {
  let cached: { result: Promise<T>; until: number } | undefined;
  return () => {
    if (cached && monotonicMs() < cached.until) return cached.result;
    const entry = { result: load(), until: Number.POSITIVE_INFINITY };
    cached = entry;
    const expire = () => {
      entry.until = monotonicMs() + TTL_MS;
    };
    entry.result.then(expire, expire);
    return entry.result;
  };
}
