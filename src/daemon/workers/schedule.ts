/**
 * Runs the workers in loops: a bounded pass, then a wait until the next one is due or the worker is
 * woken. A worker never runs twice at once in a daemon: a pass that exceeds its timeout is asked to
 * stop, and the next one waits for it. A failed pass is logged, counted and retried with growing
 * pauses.
 */
import { isOutage, logOutage } from '../../db/sqlstate.ts';
import { type Clock, type Instant, monotonicMs, pause, withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { beginSeries, type Metrics } from '../../kernel/telemetry/metrics.ts';
import type { WorkerName } from '../../kernel/workers.ts';
import type { WakeUps } from './wake-up.ts';

export interface Worker {
  name: WorkerName;
  /**
   * Runs one pass; returns when the next one is due, or undefined for `intervalMs` from now. The
   * signal aborts after `timeoutMs` and when the schedule stops; the pass then ends early.
   */
  pass: (now: Instant, signal: AbortSignal) => Promise<Instant | undefined>;
  /** The longest wait between two passes. */
  intervalMs: number;
  /**
   * Wake-ups within so long after the start of a pass cause one more at the end of that time: one
   * pass then does what several would.
   */
  gapMs?: number;
  /** The longest duration of one pass; by default that of the schedule. */
  timeoutMs?: number;
}

export interface Schedule {
  start(): void;
  /**
   * Starts no more passes, asks the running ones to stop and waits for them until their timeouts.
   * Idempotent; allowed before `start`.
   */
  stop(): Promise<void>;
}

const RETRY_MS = 100;
const RETRY_MAX_MS = 5_000;
/** How often a pass that exceeded its timeout is logged. */
const OVERDUE_LOG_MS = 30_000;

export function makeSchedule(deps: {
  workers: readonly Worker[];
  clock: Clock;
  log: Log;
  metrics: Metrics;
  passTimeoutMs: number;
  wakeUps: WakeUps;
}): Schedule {
  const { workers, clock, log, metrics, wakeUps } = deps;
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];

  async function loop(worker: Worker): Promise<void> {
    const wakeSignal = wakeUps.signalOf(worker.name);
    beginSeries(metrics.passFailures, { worker: [worker.name] });
    beginSeries(metrics.passSeconds, { worker: [worker.name] });
    metrics.passOverdue.set({ worker: worker.name }, 0);
    let failures = 0;
    while (!stopping.signal.aborted) {
      wakeSignal.reset();
      const startedAt = monotonicMs();
      let waitMs: number;
      try {
        const next = await runPass({ ...deps, stopping: stopping.signal }, worker);
        waitMs = Math.min(worker.intervalMs, (next ?? Number.POSITIVE_INFINITY) - clock.now());
        failures = 0;
      } catch (error) {
        failures++;
        metrics.passFailures.inc({ worker: worker.name });
        if (isOutage(error)) logOutage(log, error);
        else log.error({ err: error, worker: worker.name, failures }, 'worker pass failed');
        waitMs = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** Math.min(failures, 10));
        // It proves the database again.
        if (isOutage(error)) wakeUps.wake('heartbeat');
      }
      metrics.passSeconds.observe({ worker: worker.name }, (monotonicMs() - startedAt) / 1000);
      // A wake-up does not shorten the pause after a failure. After every pass timers and sockets
      // have their turn, also if it waited for nothing.
      const ignoresWakes = failures > 0 || waitMs <= 0;
      await pause(
        Math.max(0, waitMs),
        ignoresWakes ? stopping.signal : wakeSignal.or(stopping.signal),
      );
      const gapMs = Math.min(waitMs, worker.gapMs ?? 0) - (monotonicMs() - startedAt);
      if (gapMs > 0) await pause(gapMs, stopping.signal);
    }
  }

  return {
    start() {
      for (const worker of workers) loops.push(loop(worker));
    },
    async stop() {
      stopping.abort();
      await Promise.allSettled(loops);
    },
  };
}

interface PassDeps {
  clock: Clock;
  log: Log;
  metrics: Metrics;
  passTimeoutMs: number;
  /** Aborts when the schedule stops: running passes are asked to stop, overdue ones not awaited. */
  stopping: AbortSignal;
}

/** @throws Error when the pass fails or exceeds its timeout; it has ended then, or we stop */
async function runPass(deps: PassDeps, worker: Worker): Promise<Instant | undefined> {
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
  { log, metrics, stopping }: PassDeps,
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
