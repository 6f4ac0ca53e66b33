/**
 * The fee rule: whether a fee is paid on top of the amount or deducted from it. It may change with
 * an effective-from. The one place that decides which rule a write falls under: the one in force
 * when it was sent. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Operation } from '../operation.ts';

export const FEE_MODES = ['on_top', 'deducted'] as const;
/** `on_top`: the payer pays amount + fee. `deducted`: the payee receives amount - fee. */
export type FeeMode = (typeof FEE_MODES)[number];

/** From this instant on another rule is in force. */
interface FeeChange {
  from: Instant;
  mode: FeeMode;
}

export interface FeeRules {
  /** The rule from the beginning. */
  feeMode: FeeMode;
  /** Later rules, the oldest first. */
  feeChanges?: readonly FeeChange[] | undefined;
}

/** What decides which rule a write falls under. */
export type FeeTimes = Pick<Operation, 'sentAt' | 'effectiveAt' | 'recordedAt'>;

/**
 * The instant that decides: the send, because the service takes the fee then. A write that was sent
 * elsewhere counts by when it took effect, and one that was not sent yet by when it was recorded.
 * The column `fee_at` repeats it.
 */
export function feeInstantOf({ sentAt, effectiveAt, recordedAt }: FeeTimes): Instant {
  return sentAt ?? effectiveAt ?? recordedAt;
}

/** The rule in force at an instant; a change is in force from its first millisecond on. */
export function feeModeAt({ feeMode, feeChanges = [] }: FeeRules, at: Instant): FeeMode {
  return feeChanges.findLast(({ from }) => from <= at)?.mode ?? feeMode;
}

/** The rules that name the other mode at every instant. */
export function otherFeeRules({ feeMode, feeChanges = [] }: FeeRules): FeeRules {
  return {
    feeMode: otherMode(feeMode),
    feeChanges: feeChanges.map(({ from, mode }) => ({ from, mode: otherMode(mode) })),
  };
}

function otherMode(mode: FeeMode): FeeMode {
  return mode === 'on_top' ? 'deducted' : 'on_top';
}

/** Where writes under a mode are under the wrong one; null means without a bound. */
interface WrongSpan {
  mode: FeeMode;
  from: Instant | null;
  to: Instant | null;
}

/** The spans in which one of the modes is wrong; together they cover all time. */
export function wrongSpans({ feeMode, feeChanges = [] }: FeeRules): WrongSpan[] {
  const rules = [{ from: null, mode: feeMode }, ...feeChanges];
  return rules.map(({ from, mode }, i) => {
    return { mode: otherMode(mode), from, to: rules[i + 1]?.from ?? null };
  });
}

/** Equal for rules that say the same, whether or not they name a change that changes nothing. */
export function feeRulesText({ feeMode, feeChanges = [] }: FeeRules): string {
  const changes: FeeChange[] = [];
  for (const { from, mode } of feeChanges)
    if (mode !== (changes.at(-1)?.mode ?? feeMode)) changes.push({ from, mode });
  return JSON.stringify({ feeMode, feeChanges: changes });
}
