/** The reconciler's settings, and what every evaluation is given to work with. */
import type { Instant } from '../kernel/clock.ts';
import type { Ids } from '../kernel/ids.ts';
import type { PendingPolls, PollIntervals } from '../observer/observer.ts';
import type { EffectSettings, Operations } from '../operations/operations.ts';

export interface ReconcilerSettings extends PollIntervals {
  /** L: how long a write may take to show in reads, in milliseconds. */
  readLagMs: number;
  /** How long after its send deadline the service may still apply a write, in milliseconds. */
  quiescenceMs: number;
  /** How long after quiescence an unexplained unknown operation becomes undecided. */
  undecidedAfterMs: number;
  /** One-sided evidence is enough when the polls around the send are at most so far apart. */
  bracketMaxMs: number;
  /** Whether one-sided evidence may resolve an operation, or people always decide. */
  oneSided: 'resolve' | 'people';
}

export interface Deps {
  ids: Ids;
  operations: Operations;
  effectSettings: EffectSettings;
  settings: ReconcilerSettings;
  /** When targets are polled next that something waits for. */
  polls: PendingPolls;
  /**
   * Has a target polled by then. It takes effect after the commit of the evaluation, which holds
   * locks that a poll may wait for; a crash between the two delays the poll to its regular time.
   */
  pollBy(target: string, at: Instant): void;
  /** Since when the service has been available, as far as known; infinite while it is down. */
  availableSince: Instant;
  /** When the database was last restored or failed over; writes from before may be unknown. */
  restoredAt: Instant | undefined;
}
