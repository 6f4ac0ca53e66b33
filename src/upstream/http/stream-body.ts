/**
 * The way on of an answer that is larger than what is kept: piece by piece, as fast as its reader
 * takes it, never more than one piece ahead. It must not stand still for long, and it ends by its
 * own deadline; a stream that does not come to its end is cut, so that its reader sees it.
 */
import { after, type Clock } from '../../kernel/clock.ts';
import type { Sink } from '../types.ts';

/** How long a stream may stand still, and how long it may take at all. */
const STILL_MS = 30_000;
const WHOLE_MS = 600_000;

/** The source of the pieces, which can be held back. */
export interface Source {
  pause(): void;
  resume(): void;
}

export interface Relay {
  pass(source: Source, piece: Uint8Array): void;
  /** The source has come to its end. */
  end(): void;
  /** The source broke off. */
  cut(): void;
}

/** @param stuck called once when the stream is given up; the source must then be closed */
export function makeRelay(sink: Sink, clock: Clock, stuck: () => void): Relay {
  const until = clock.now() + WHOLE_MS;
  let ended = false;
  let disarm = () => {};
  const finish = (how: () => void) => {
    if (ended) return;
    ended = true;
    disarm();
    how();
  };
  const keepMoving = () => {
    disarm();
    disarm = after(Math.max(0, Math.min(STILL_MS, until - clock.now())), stuck);
  };
  keepMoving();
  return {
    pass(source, piece) {
      if (ended) return;
      keepMoving();
      if (sink.write(piece)) return;
      source.pause();
      sink.drained(() => {
        if (ended) return;
        keepMoving();
        source.resume();
      });
    },
    end: () => finish(() => sink.end()),
    cut: () => finish(() => sink.cut()),
  };
}
