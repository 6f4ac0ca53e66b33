/** Wake-ups of workers and of requests that wait: by name, coalesced, and broadcast. */
import { after, pause } from '../../kernel/clock.ts';
import type { Wake, WorkerName } from '../../kernel/workers.ts';

export interface WakeUps {
  wake: Wake;
  /** Set before a wait, it ends that wait at once. */
  signalOf(name: WorkerName): WakeSignal;
}
type WakeSignal = ReturnType<typeof makeWakeSignal>;

/** @param elsewhere how workers of another process are woken */
export function makeWakeUps(elsewhere: { [name in WorkerName]?: () => void } = {}): WakeUps {
  const signals = new Map<WorkerName, WakeSignal>();
  const signalOf = (name: WorkerName) => {
    const signal = signals.get(name) ?? makeWakeSignal();
    signals.set(name, signal);
    return signal;
  };
  return {
    signalOf,
    wake(...names) {
      for (const name of names) (elsewhere[name] ?? signalOf(name).set)();
    },
  };
}

function makeWakeSignal() {
  let controller = new AbortController();
  return {
    // With a reason, because the default one captures a stack trace on every call.
    set: () => controller.abort('woken'),
    reset: () => {
      if (controller.signal.aborted) controller = new AbortController();
    },
    or: (stop: AbortSignal) => AbortSignal.any([controller.signal, stop]),
  };
}

/**
 * Calls `act` at once, and calls within the next `everyMs` as one more at the end of that gap.
 * A thousand writes per second would otherwise cause a thousand small passes of later stages.
 */
export function coalesce(everyMs: number, act: () => void): () => void {
  let inGap = false;
  let again = false;
  const run = () => {
    inGap = true;
    again = false;
    after(everyMs, () => {
      inGap = false;
      if (again) run();
    });
    act();
  };
  return () => {
    if (inGap) again = true;
    else run();
  };
}

export interface Notifier {
  /** Ends every current wait. */
  notify(): void;
  /** Resolves at the next `notify`, after `ms`, or when the signal aborts. */
  wait(signal: AbortSignal, ms: number): Promise<void>;
}

export function makeNotifier(): Notifier {
  let current = new AbortController();
  return {
    notify() {
      const previous = current;
      current = new AbortController();
      previous.abort();
    },
    wait: (signal, ms) => pause(ms, AbortSignal.any([signal, current.signal])),
  };
}
