/**
 * The bracket of a change: the time between two observations in which a wallet must have been
 * changed elsewhere if that change, and not the unknown operation, explains its balance. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';

/** One observation of a wallet, compared with what is expected today. */
export interface WalletObservation {
  observationId: string;
  startedAt: Instant;
  endedAt: Instant;
  /** Observed minus expected balance, without the unknown operation. */
  residual: bigint;
  /** False when another operation is possible; the observation then bounds nothing. */
  unambiguous: boolean;
}

/** An unknown operation: its effect on the wallet, and when the service may have applied it. */
export interface UnknownEffect {
  effect: bigint;
  sentAt: Instant;
  /** From when on an observation includes it if it was executed. */
  quiescentAt: Instant;
  readLagMs: number;
}

/**
 * The length of the bracket in milliseconds; infinite when the balance shows the effect for another
 * reason, undefined when the observations do not bound it.
 *
 * If `executed` is wrong, the change happened between the last observation without the effect and
 * the first one with it. If `not_executed` is wrong, the operation and a change that hides it
 * happened between the same two observations before quiescence; the longest gap counts.
 * @param observations oldest first
 */
export function bracketMsOf(
  outcome: 'executed' | 'not_executed',
  observations: readonly WalletObservation[],
  unknown: UnknownEffect,
): number | undefined {
  const unambiguous = observations.filter((observation) => observation.unambiguous);
  return outcome === 'executed'
    ? shownWithin(unambiguous, unknown)
    : hiddenWithin(unambiguous, unknown);
}

/** Two successive observations between which the balance changed. */
export interface Step {
  before: WalletObservation;
  after: WalletObservation;
  bracketMs: number;
}

/**
 * The one step by exactly the effect of the operation on a wallet that was also changed elsewhere;
 * undefined without exactly one such step, or when it was taken back.
 * @param observations oldest first
 */
export function stepOf(
  observations: readonly WalletObservation[],
  unknown: UnknownEffect,
): Step | undefined {
  const unambiguous = observations.filter((observation) => observation.unambiguous);
  // The newest observation must show whether the step stayed.
  if (unambiguous.at(-1) !== observations.at(-1)) return undefined;
  const from = unambiguous.findLastIndex(({ endedAt }) => endedAt <= unknown.sentAt);
  if (from < 0) return undefined;
  const gaps = unambiguous
    .slice(from + 1)
    .map((after, i) => ({ before: unambiguous[from + i] ?? after, after }));
  const moved = gaps.map(({ before, after }) => after.residual - before.residual);
  const steps = gaps.filter((_, i) => moved[i] === unknown.effect);
  const [only] = steps;
  const takenBack = moved.some((change) => change === -unknown.effect);
  return only && steps.length === 1 && !takenBack
    ? { ...only, bracketMs: gapMs(only.before, only.after, unknown) }
    : undefined;
}

/** An observation is true at some instant between its start minus the read lag and its end. */
function gapMs(
  before: WalletObservation,
  after: WalletObservation,
  { readLagMs }: UnknownEffect,
): number {
  return after.endedAt - (before.startedAt - readLagMs);
}

function shownWithin(
  unambiguous: readonly WalletObservation[],
  unknown: UnknownEffect,
): number | undefined {
  const at = unambiguous.findLastIndex(({ residual }) => residual !== unknown.effect);
  const [before, first] = [unambiguous[at], unambiguous[at + 1]];
  if (before?.residual !== 0n || !first) return undefined;
  // A change before the send is not its effect.
  return first.endedAt < unknown.sentAt ? Number.POSITIVE_INFINITY : gapMs(before, first, unknown);
}

function hiddenWithin(
  unambiguous: readonly WalletObservation[],
  unknown: UnknownEffect,
): number | undefined {
  const { sentAt, quiescentAt } = unknown;
  const from = unambiguous.findLastIndex(({ endedAt }) => endedAt <= sentAt);
  const to = unambiguous.findIndex(({ startedAt }) => startedAt >= quiescentAt);
  if (from < 0 || to < 0) return undefined;
  const within = unambiguous.slice(from, to + 1);
  if (within.some(({ residual }) => residual !== 0n)) return undefined;
  const gaps = within
    .slice(1)
    .map((observation, i) => gapMs(within[i] ?? observation, observation, unknown));
  return Math.max(...gaps);
}
