/** Deadlines of promises, and locks by name. */
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
  /** Of each name of which work is running, what begins the work that waits, oldest first. */
  const queues = new Map<string, Set<() => void>>();
  let open = 0;

  /** Work that times out leaves the queue, so that nothing of it is kept. */
  const waitIn = (queue: Set<() => void>) =>
    new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        queue.delete(begin);
        reject(stillRunning());
      }, waitMs);
      queue.add(begin);
    });

  const beginNext = (name: string, queue: Set<() => void>) => {
    const [begin] = queue;
    if (!begin) {
      queues.delete(name);
      return;
    }
    queue.delete(begin);
    begin();
  };

  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (open >= OPEN_MAX)
      throw new WebhookError('busy', `${OPEN_MAX} events are being handled; do handlers end?`);
    open++;
    try {
      const running = queues.get(name);
      const queue = running ?? new Set();
      queues.set(name, queue);
      if (running) await waitIn(queue);
      try {
        return await work();
      } finally {
        beginNext(name, queue);
      }
    } finally {
      open--;
    }
  };
}

function stillRunning(): WebhookError {
  return new WebhookError('busy', 'an earlier event of the same subject is still being handled');
}
