/** Account names and times of effect. Pure. */
import type { Instant } from '../kernel/clock.ts';
import { type Operation, Unpostable } from '../operations/operations.ts';

const NAME = /^(?:(wallet):([\x21-\x7e]{42})|(operator):\d+|(fees|collection|opening|external))$/;

/** The kind of an account by its name. @throws Unpostable for an invalid name */
export function accountKind(name: string): string {
  const parts = NAME.exec(name);
  const kind = parts?.[1] ?? parts?.[3] ?? parts?.[4];
  if (!kind) throw new Unpostable('the account has no valid name');
  return kind;
}

/** When the write took effect, as far as known. */
export function effectiveTimeOf(operation: Operation): {
  effectiveAt: Instant;
  effectiveBasis: string;
} {
  const { effectiveAt, effectiveBasis, answeredAt, recordedAt } = operation;
  if (effectiveAt !== null) return { effectiveAt, effectiveBasis: effectiveBasis ?? 'operation' };
  return answeredAt !== null
    ? { effectiveAt: answeredAt, effectiveBasis: 'answer' }
    : { effectiveAt: recordedAt, effectiveBasis: 'recorded' };
}

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
