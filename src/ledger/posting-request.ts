/** Postings that later stages request: openings, bookings and their reversals. */
import type { Instant } from '../kernel/clock.ts';

export interface PostingRequest {
  /** Chosen by the requester; a second request with the same id changes nothing. */
  id: string;
  kind: 'opening' | 'booking' | 'reversal';
  /** The account that changes by `amount`. */
  account: string;
  /** The account that changes by `-amount`: `opening` or `external`. */
  counter: string;
  amount: bigint;
  effectiveAt: Instant;
  effectiveBasis: string;
  requestedBy: string;
  /** For people. */
  reason?: string | null;
  /** The id of the request that a reversal reverses. */
  reverses?: string | null;
  /**
   * Of an opening: when the observation behind it began, and the version of the account when it was
   * computed (0 for an account that did not exist).
   */
  seen?: { at: Instant; version: bigint } | null;
}
