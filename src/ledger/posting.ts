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
