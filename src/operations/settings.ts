/** Settings of operations: limits of waiting and queueing, and the effects of writes. */
import type { EffectSettings } from './effects/effects.ts';

export interface OperationsSettings {
  /** The longest wait of a write for a conflicting one, ms. */
  conflictWaitMs: number;
  /** After that wait, whether to refuse it (`wallet_outcome_pending`) or send it as ambiguous. */
  refuseConflicts: boolean;
  /** Writes that may wait at once; for further ones the wait is over immediately. */
  waitingMax: number;
  /** Writes in the request queue; further ones are refused. */
  queueMax: number;
  /** The longest time from the claim of a queued write to its answer, ms. */
  queuedSendWithinMs: number;
  effects: EffectSettings;
}

export const operationsDefaults: OperationsSettings = {
  conflictWaitMs: 2_000,
  refuseConflicts: false,
  waitingMax: 1_000,
  queueMax: 100_000,
  queuedSendWithinMs: 30_000,
  effects: { feeMode: 'on_top', operators: new Map() },
};
