/** What a later stage asks the ledger to post: an opening, a booking, or what takes one back. */
import type { Instant } from '../kernel/clock.ts';

/** A posting that a later stage asks for. */
export interface PostingRequest {
  /** The asker's own name for it; wanting it twice is harmless. */
  id: string;
  kind: 'opening' | 'booking' | 'reversal';
  /** The account that changes by `amount`. */
  account: string;
  /** The other side, which changes by `-amount`: `opening` or `external`. */
  counter: string;
  amount: bigint;
  effectiveAt: Instant;
  effectiveBasis: string;
  requestedBy: string;
  /** For people; kept with the wanted posting. */
  reason?: string | null;
  /** The id of the wanted posting that a reversal takes back. */
  reverses?: string | null;
  /**
   * For an opening: the start of the observation that it rests on, and the version of the account
   * in the
   * snapshot that judged it (0 for an account that was not there).
   */
  seen?: { at: Instant; version: bigint } | null;
}
