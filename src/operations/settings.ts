/** What the journal is told about this installation: how long writes wait, and what they touch. */
import type { Kind, WriteFields } from './operation.ts';

/** What a write would do to wallets, all by lower-case address. */
export interface Touched {
  /** By how much each wallet of a user would change; our own books' wallets are not among them. */
  users: ReadonlyMap<string, bigint>;
  /** Every wallet that would change, ours included. */
  all: readonly string[];
}

export interface OperationsSettings {
  /** How long a write waits at most for a write that it could not be told apart from, ms. */
  admissionWaitMs: number;
  /** What happens after that: refused (`wallet_outcome_pending`), or sent and marked ambiguous. */
  refuseAmbiguous: boolean;
  /** Writes that may wait at once; one more is treated as if its wait had ended. */
  waitingMax: number;
  /** Writes in the queue at most; one more is refused. */
  queueMax: number;
  /** How long a queued write may take from its claim to the first byte and its answer, ms. */
  queuedSendWithinMs: number;
  /** The wallets that a write touches; pure, and without any for a write that cannot be posted. */
  touchedBy: (kind: Kind, fields: WriteFields) => Touched;
}

const NOTHING: Touched = { users: new Map(), all: [] };

/** Without knowledge of the books no wallet is known, so nothing is held apart by balances. */
export const operationsDefaults: OperationsSettings = {
  admissionWaitMs: 2_000,
  refuseAmbiguous: false,
  waitingMax: 1_000,
  queueMax: 100_000,
  queuedSendWithinMs: 30_000,
  touchedBy: () => NOTHING,
};
