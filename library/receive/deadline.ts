/** Waits with an end, and work that is done one at a time. */
import { WebhookError } from './errors.ts';

/** The promise's result. @throws the error of `late` after `ms`; the promise itself goes on */
export async function withDeadline<T>(
  promise: Promise<T>,
  ms: number,
  late: () => WebhookError,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([promise, end]);
  } finally {
    clearTimeout(timer);
  }
}

/** How long work waits for that of the same name before it, and how much there may be in all. */
const WAIT_MS = 10_000;
const OPEN_MAX = 1_000;

/**
 * Runs work of one name at a time, in the order in which it came.
 * @param waitMs replaced in tests
 * @throws WebhookError `busy`
 */
export function makeLocks(waitMs = WAIT_MS) {
  /** Of each name the work that came last; it is resolved once all work before it ended, too. */
  const last = new Map<string, Promise<void>>();
  let open = 0;
  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (open >= OPEN_MAX)
      throw new WebhookError('busy', `${OPEN_MAX} events are being handled; do handlers end?`);
    open++;
    const before = last.get(name);
    let release = () => {};
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tail = before ? before.then(() => mine) : mine;
    last.set(name, tail);
    const forget = (ended: Promise<void>) => {
      if (last.get(name) === ended) last.delete(name);
    };
    try {
      if (before) await withDeadline(before, waitMs, stillRunning);
    } catch (error) {
      release();
      open--;
      // After a timeout the next call still waits for the call before this one.
      if (before && last.get(name) === tail) {
        last.set(name, before);
        void before.then(() => forget(before));
      }
      throw error;
    }
    try {
      return await work();
    } finally {
      release();
      open--;
      forget(tail);
    }
  };
}

function stillRunning(): WebhookError {
  return new WebhookError('busy', 'an earlier event of the same subject is still being handled');
}
