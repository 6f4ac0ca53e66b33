/** Answers that many requests share, so that a flood of them costs little. */
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

/** Runs `load` once at a time; a call gets the result of a run that began after it. */
export function oneAtATime<T>(load: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  const run = () => {
    next = undefined;
    const result = load();
    running = result.catch(() => {});
    return result;
  };
  return () => {
    next ??= running.then(run);
    return next;
  };
}
