/**
 * What operations are told about this installation: how long writes wait,
 * and whose wallets are whose.
 */
import type { EffectSettings } from './effects.ts';

export interface OperationsSettings {
  /** How long a write waits at most for a conflicting one, ms. */
  conflictWaitMs: number;
  /** What happens after that: refused (`wallet_outcome_pending`), or sent and marked ambiguous. */
  refuseConflicts: boolean;
  /** Writes that may wait at once; one more is treated as if its wait had ended. */
  waitingMax: number;
  /** Writes in the request queue at most; one more is refused. */
  queueMax: number;
  /** How long a queued write may take from its claim to the first byte and its answer, ms. */
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
