/** Wake-ups between workers and for requests that wait: coalesced, and broadcast. */
import { after, pause } from '../../kernel/clock.ts';

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
