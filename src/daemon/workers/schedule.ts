/**
 * The rhythm of the workers. Each does one bounded pass and says when it wants the next; here is
 * the loop, the wake-up, the deadline of a pass and the stop. One worker never runs twice at once
 * in a daemon; a pass that fails is logged, counted, and tried again, later each time.
 */
import { type Clock, type Instant, monotonicMs, pause, withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';

export interface Worker {
  name: string;
  /** One pass. Answers when the next should be: an instant, or undefined for the usual poll. */
  pass: (now: Instant) => Promise<Instant | undefined>;
  /** The longest wait between passes, in milliseconds. */
  pollMs: number;
  /** How long one pass may take; absent: the schedule's own. */
  deadlineMs?: number;
}

export interface Schedule {
  start(): void;
  /** Runs these workers soon, or once more if they are running. */
  wake(...names: string[]): void;
  /**
   * Starts no more passes and resolves when those under way are done. Harmless twice, or before
   * start.
   */
  stop(): Promise<void>;
}

const FAILURE_PAUSE_MS = 100;
const FAILURE_PAUSE_MAX_MS = 5_000;

/** The schedule of one daemon. */
export function makeSchedule(given: {
  workers: readonly Worker[];
  clock: Clock;
  log: Log;
  metrics: Metrics;
  passDeadlineMs: number;
}): Schedule {
  const { workers, clock, log, metrics, passDeadlineMs } = given;
  const stopping = new AbortController();
  const bells = new Map(workers.map((worker) => [worker.name, makeBell()]));
  const loops: Promise<void>[] = [];

  async function loop(worker: Worker): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      const bell = bells.get(worker.name) ?? makeBell();
      bell.reset();
      const started = monotonicMs();
      let waitMs: number;
      try {
        const next = await withDeadline(
          worker.pass(clock.now()),
          worker.deadlineMs ?? passDeadlineMs,
          () => {
            throw new Error('the pass exceeded its deadline');
          },
        );
        waitMs = Math.min(worker.pollMs, next === undefined ? worker.pollMs : next - clock.now());
        failures = 0;
      } catch (error) {
        failures++;
        metrics.passFailures.inc({ worker: worker.name });
        log.error({ err: error, worker: worker.name, failures }, 'a pass failed');
        waitMs = Math.min(FAILURE_PAUSE_MAX_MS, FAILURE_PAUSE_MS * 2 ** Math.min(failures, 10));
      }
      metrics.passSeconds.observe({ worker: worker.name }, (monotonicMs() - started) / 1000);
      if (waitMs > 0)
        await pause(waitMs, failures > 0 ? stopping.signal : bell.signal(stopping.signal));
    }
  }

  return {
    start() {
      for (const worker of workers) loops.push(loop(worker));
    },
    wake(...names) {
      for (const name of names) bells.get(name)?.ring();
    },
    async stop() {
      stopping.abort();
      for (const bell of bells.values()) bell.ring();
      await Promise.allSettled(loops);
    },
  };
}

/** A bell that rings once per wait: rung before the wait, the wait ends at once. */
function makeBell() {
  let controller = new AbortController();
  return {
    // With a reason of its own, since the usual one takes a stack at every ring.
    ring: () => controller.signal.aborted || controller.abort('rung'),
    reset: () => {
      if (controller.signal.aborted) controller = new AbortController();
    },
    signal: (stop: AbortSignal) => AbortSignal.any([controller.signal, stop]),
  };
}
