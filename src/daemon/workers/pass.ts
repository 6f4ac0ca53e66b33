/**
 * Runs one pass of a worker within its timeout. A pass that exceeds it is asked to stop, fails, and
 * is waited for, so that it never runs beside the next one.
 */
import { type Clock, type Instant, monotonicMs, withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Worker } from './schedule.ts';

/** How often a pass that exceeded its timeout is logged. */
const OVERDUE_LOG_MS = 30_000;

interface Deps {
  clock: Clock;
  log: Log;
  metrics: Metrics;
  passTimeoutMs: number;
  /** Aborts when the schedule stops: running passes are asked to stop, overdue ones not awaited. */
  stopping: AbortSignal;
}

/** @throws Error when the pass fails or exceeds its timeout; it has ended then, or we stop */
export async function runPass(deps: Deps, worker: Worker): Promise<Instant | undefined> {
  const { clock, passTimeoutMs, stopping } = deps;
  const startedAt = monotonicMs();
  const controller = new AbortController();
  const stop = () => controller.abort('stopping');
  stopping.addEventListener('abort', stop);
  const pass = Promise.try(() => worker.pass(clock.now(), controller.signal));
  let overdue = false;
  try {
    return await withDeadline(pass, worker.timeoutMs ?? passTimeoutMs, () => {
      overdue = true;
      controller.abort('timeout');
      throw new Error('the pass exceeded its timeout');
    });
  } finally {
    stopping.removeEventListener('abort', stop);
    if (overdue) await waitForEnd(deps, worker.name, pass, startedAt);
  }
}

async function waitForEnd(
  { log, metrics, stopping }: Deps,
  worker: string,
  pass: Promise<unknown>,
  startedAt: number,
): Promise<void> {
  let ended = false;
  const end = pass
    .catch((error: unknown) => {
      log.error({ err: error, worker }, 'worker pass failed after its timeout');
    })
    .then(() => {
      ended = true;
    });
  while (!ended && !stopping.aborted) {
    const seconds = (monotonicMs() - startedAt) / 1000;
    metrics.passOverdue.set({ worker }, seconds);
    log.error({ worker, seconds }, 'worker pass exceeded its timeout; the next one waits for it');
    await withDeadline(end, OVERDUE_LOG_MS, () => {}, stopping);
  }
  metrics.passOverdue.set({ worker }, 0);
}
