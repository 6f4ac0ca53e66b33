/**
 * Tells those who wait that something new is there; nobody is kept waiting beyond a time or a
 * signal.
 */
import { pause } from '../../kernel/clock.ts';

export interface Notifier {
  /** Ends the wait of everybody who waits now. */
  ring(): void;
  /** Resolves at the next ring, after `ms`, or when the signal aborts. */
  next(signal: AbortSignal, ms: number): Promise<void>;
}

export function makeNotifier(): Notifier {
  let bell = new AbortController();
  return {
    ring() {
      const rung = bell;
      bell = new AbortController();
      rung.abort();
    },
    next: (signal, ms) => pause(ms, AbortSignal.any([signal, bell.signal])),
  };
}
