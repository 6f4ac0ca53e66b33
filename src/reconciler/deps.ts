/** What surrounds every judgement: who writes it down, by which settings, under what conditions. */

import type { Instant } from '../kernel/clock.ts';
import type { Ids } from '../kernel/ids.ts';
import type { PollIntervals } from '../observer/observer.ts';
import type { EffectSettings, Operations } from '../operations/operations.ts';
import type { Odds } from './unknown/probability.ts';

export interface ReconcilerSettings extends PollIntervals {
  /** L: how long a write may take to show in reads, in milliseconds. */
  readLagMs: number;
  /** How long after its send deadline a write may still be applied by the service. */
  quiescenceMs: number;
  /** How long after that an unexplained unknown outcome is given to people. */
  undecidedAfterMs: number;
}

/** What every judgement needs. */
export interface Context {
  ids: Ids;
  operations: Operations;
  books: EffectSettings;
  settings: ReconcilerSettings;
  /** Since when the service answers, as far as known; infinite while it is down. */
  availableSince: Instant;
  /** Since when somebody has judged without a break: nobody waits in vain while nobody judges. */
  processingSince: Instant;
  /** What lost answers have taught so far. */
  odds: Odds;
}
