/**
 * Runs the process that sends webhooks: starts it, starts it again with growing pauses when it
 * ends, and stops it with the daemon. Nothing that happens to it reaches the writes of apps.
 */
import { monotonicMs, pause } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics, MetricsSnapshot } from '../../kernel/metrics.ts';
import { type Child, startChild } from './child.ts';
import type { Start } from './messages.ts';

export interface Supervisor {
  start(): void;
  isRunning(): boolean;
  /** Asks the process to look for deliveries now. */
  wake(): void;
  /** The metrics of the process; undefined without one. */
  report(): Promise<MetricsSnapshot | undefined>;
  /** Lets the process finish its sends, and kills it after `withinMs`. Allowed before `start`. */
  stop(withinMs: number): Promise<void>;
}

/** For a scrape. */
const REPORT_WITHIN_MS = 1_000;
const PAUSE_MS = 100;
const PAUSE_MAX_MS = 10_000;
/** A process that ran for so long is started again without a longer pause. */
const STABLE_MS = 60_000;

/** The pause before a start, after that many ends in a row. Pure. */
export function pauseBeforeStart(ends: number): number {
  return ends === 0 ? 0 : Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** Math.min(ends - 1, 30));
}

export function makeSupervisor(deps: {
  start: Start;
  /** Living daemons that deliver, at present. */
  daemons: () => number;
  log: Log;
  metrics: Pick<Metrics, 'deliveryUp' | 'deliveryStarts'>;
}): Supervisor {
  const { start, daemons, log, metrics } = deps;
  const stopping = new AbortController();
  let loop: Promise<void> = Promise.resolve();
  /** Set from its start to its end, and whether it is ready. */
  let child: Child | undefined;
  let running = false;

  async function runChild(): Promise<string> {
    metrics.deliveryStarts.inc();
    const onReady = (pid: number | undefined) => {
      running = true;
      metrics.deliveryUp.set(1);
      log.info({ pid }, 'the delivery process is ready');
    };
    let reason: string;
    try {
      child = startChild({ start, daemons, log, onReady });
      reason = await child.ended;
    } catch (error) {
      // Such as too many open files.
      reason = error instanceof Error ? error.message : 'unknown';
    }
    child = undefined;
    running = false;
    metrics.deliveryUp.set(0);
    return reason;
  }

  async function runChildren(): Promise<void> {
    for (let ends = 0; !stopping.signal.aborted; ) {
      const startedAt = monotonicMs();
      const reason = await runChild();
      if (stopping.signal.aborted) return;
      ends = monotonicMs() - startedAt < STABLE_MS ? ends + 1 : 1;
      const pauseMs = pauseBeforeStart(ends);
      log.error({ reason, ends, pauseMs }, 'the delivery process ended; it is started again');
      await pause(pauseMs, stopping.signal);
    }
  }

  return {
    start() {
      metrics.deliveryUp.set(0);
      loop = runChildren();
    },
    isRunning: () => running,
    wake() {
      if (running) child?.wake();
    },
    report: async () => (running ? child?.report(REPORT_WITHIN_MS) : undefined),
    async stop(withinMs) {
      stopping.abort();
      child?.stop(withinMs);
      await loop;
    },
  };
}
