/**
 * Runs the process that sends webhooks: starts it, kills it when it does not answer, starts it
 * again with growing pauses when it ends, and stops it with the daemon. Nothing that happens to it
 * reaches the writes of apps.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { after, monotonicMs, pause, withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Metrics, MetricsSnapshot } from '../../kernel/telemetry/metrics.ts';
import type { Daemons, FromDelivery, Start, ToDelivery } from './messages.ts';

interface Supervisor {
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

/** The pause before a start, after that many ends in a row. */
function pauseBeforeStart(ends: number): number {
  return ends === 0 ? 0 : Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** Math.min(ends - 1, 30));
}

export function makeSupervisor(deps: {
  start: Start;
  daemons: () => Daemons;
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

/** One process, as its daemon sees it. */
interface Child {
  /** Asks it to look for deliveries now. */
  wake(): void;
  /** Its present metrics, or the last ones when it does not answer within `withinMs`. */
  report(withinMs: number): Promise<MetricsSnapshot | undefined>;
  /** Lets it finish its sends, and kills it after `withinMs`. */
  stop(withinMs: number): void;
  /** Resolves when the process is gone, with the reason. */
  ended: Promise<string>;
}

interface ChildDeps {
  start: Start;
  daemons: () => Daemons;
  log: Log;
  onReady: (pid: number | undefined) => void;
}

const ENTRY = fileURLToPath(new URL('./main.ts', import.meta.url));
/** Loading the program and opening the database, on a busy machine. */
const READY_WITHIN_MS = 60_000;
/** A process that is blocked for longer is killed. */
const ANSWER_WITHIN_MS = 15_000;
const WATCH_INTERVAL_MS = 5_000;

/** Starts a process, and kills it when it does not become ready or stops answering. */
function startChild({ start, daemons, log, onReady }: ChildDeps): Child {
  const child = fork(ENTRY, [], {
    // Its log goes where that of the daemon goes.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  const gone = new AbortController();
  const ended = endOf(child).finally(() => gone.abort());
  const ready = Promise.withResolvers<void>();
  let reported = Promise.withResolvers<void>();
  let metrics: MetricsSnapshot | undefined;
  let isWaking = false;

  const tell = (message: ToDelivery, onSent = () => {}) => void child.send(message, onSent);
  const kill = (why: string) => {
    log.error({ pid: child.pid }, `the delivery process ${why}; it is killed`);
    child.kill('SIGKILL');
  };
  const onMessage = (message: FromDelivery) => {
    if (message.kind === 'ready') return ready.resolve();
    metrics = message.metrics;
    reported.resolve();
    reported = Promise.withResolvers();
  };
  /** Returns false when no report comes in time. */
  const requestReport = (withinMs: number): Promise<boolean> => {
    tell({ kind: 'report', daemons: daemons() });
    const answered = reported.promise.then(() => true);
    return withDeadline(answered, withinMs, () => false, gone.signal);
  };
  async function watch(): Promise<void> {
    const isReady = ready.promise.then(() => true);
    if (!(await withDeadline(isReady, READY_WITHIN_MS, () => false, gone.signal)))
      return gone.signal.aborted ? undefined : kill('did not become ready');
    onReady(child.pid);
    while (!gone.signal.aborted) {
      if (!(await requestReport(ANSWER_WITHIN_MS)) && !gone.signal.aborted) kill('does not answer');
      await pause(WATCH_INTERVAL_MS, gone.signal);
    }
  }

  child.on('message', onMessage);
  tell(start);
  void watch();
  return {
    wake() {
      // One message at most waits for a process that does not read.
      if (isWaking) return;
      isWaking = true;
      tell({ kind: 'wake' }, () => {
        isWaking = false;
      });
    },
    async report(withinMs) {
      await requestReport(withinMs);
      return metrics;
    },
    stop(withinMs) {
      tell({ kind: 'stop' });
      const cancel = after(withinMs, () => kill('did not stop in time'));
      gone.signal.addEventListener('abort', cancel);
    },
    ended,
  };
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on('error', ({ message }) => {
      // An error of a running process, such as a signal that cannot be sent, does not end it.
      if (child.pid === undefined) resolve(message);
    });
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
}
