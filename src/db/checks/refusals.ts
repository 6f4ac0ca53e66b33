/**
 * Whether Postgres refuses what is to be recorded, such as with a full disk, while it answers reads
 * and even commits heartbeats, which need no further page.
 */
import { monotonicMs } from '../../kernel/clock.ts';
import { refusalOf } from '../sqlstate.ts';

export interface Refusals {
  /** A write was recorded. */
  accepted(): void;
  /** It was not, with this error, such as a refusal. */
  failed(error: unknown): void;
  /** The SQLSTATE of a refusal in so many milliseconds, if nothing was recorded since. */
  within(ms: number): string | undefined;
}

/** @param nowMs counts milliseconds */
export function makeRefusals(nowMs: () => number = monotonicMs): Refusals {
  let last: { code: string; atMs: number } | undefined;
  return {
    accepted() {
      last = undefined;
    },
    failed(error) {
      const code = refusalOf(error);
      if (code !== undefined) last = { code, atMs: nowMs() };
    },
    within: (ms) => (last && nowMs() - last.atMs < ms ? last.code : undefined),
  };
}
