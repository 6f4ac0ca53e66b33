/**
 * Streams a body that is larger than the client buffers, piece by piece, as fast as its reader
 * takes it and never more than one piece ahead. A stream that stalls or takes too long is cut, so
 * that its reader sees that it is incomplete.
 */
import { after, type Clock } from '../../kernel/clock.ts';
import type { Sink } from '../types.ts';

/** How long a stream may stall, and how long it may take in all. */
const STALL_MS = 30_000;
const WHOLE_MS = 600_000;

/** The source of the pieces, which can be held back. */
export interface Source {
  pause(): void;
  resume(): void;
}

export interface BodyStream {
  write(source: Source, piece: Uint8Array): void;
  end(): void;
  cut(): void;
}

/** @param giveUp called once when the stream exceeds a limit; must close the source */
export function makeBodyStream(sink: Sink, clock: Clock, giveUp: () => void): BodyStream {
  const until = clock.now() + WHOLE_MS;
  let ended = false;
  let cancel = () => {};
  const finish = (how: () => void) => {
    if (ended) return;
    ended = true;
    cancel();
    how();
  };
  const restartTimer = () => {
    cancel();
    cancel = after(Math.max(0, Math.min(STALL_MS, until - clock.now())), giveUp);
  };
  restartTimer();
  return {
    write(source, piece) {
      if (ended) return;
      restartTimer();
      if (sink.write(piece)) return;
      source.pause();
      sink.drained(() => {
        if (ended) return;
        restartTimer();
        source.resume();
      });
    },
    end: () => finish(() => sink.end()),
    cut: () => finish(() => sink.cut()),
  };
}
