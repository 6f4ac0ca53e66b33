/** One process that sends webhooks, as its daemon sees it: started, asked, stopped or killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { after, pause, withDeadline } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { MetricsSnapshot } from '../../kernel/metrics.ts';
import type { FromDelivery, Start, ToDelivery } from './messages.ts';

export interface Child {
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
  /** Living daemons that deliver, at present. */
  daemons: () => number;
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
export function startChild({ start, daemons, log, onReady }: ChildDeps): Child {
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
      child.kill('SIGTERM');
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
