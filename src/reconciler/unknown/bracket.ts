/**
 * In which time an outside change must have happened if it, and not a lost write, is the reason for
 * what one wallet shows. Pure. Every look at the wallet narrows it down: what two looks agree on
 * did not change between them, so a change that fools us fell into one gap between two looks.
 */
import type { Instant } from '../../kernel/clock.ts';

/** One look at a wallet, held against the books as they stand today. */
export interface Sighting {
  observationId: string;
  startedAt: Instant;
  endedAt: Instant;
  /** How far the balance is off without the write. */
  residual: bigint;
  /** False when the look may or may not show any other write: then it bounds nothing. */
  plain: boolean;
}

/** The lost write as the wallet would show it, and when the service may have applied it. */
export interface Asked {
  effect: bigint;
  sentAt: Instant;
  /** From when on a look must show it if it was executed. */
  quietAt: Instant;
  readLagMs: number;
}

/**
 * The length of the longest such gap in milliseconds, infinite when it shows for another reason;
 * undefined when the looks do not bound it.
 *
 * Executed after all though nothing shows: then the write and a change that hides it came between
 * the same two looks, while the write could still be applied. Not executed though it shows: then
 * the change came between the last look without it and the first one with it.
 * @param looks oldest first, all of the time asked about
 */
export function windowMsOf(
  outcome: 'executed' | 'not_executed',
  observations: readonly Sighting[],
  asked: Asked,
): number | undefined {
  const plain = observations.filter((observation) => observation.plain);
  return outcome === 'executed' ? shownWithin(plain, asked) : hiddenWithin(plain, asked);
}

/** Two looks that follow each other, and the time in milliseconds in which the change came. */
export interface Step {
  before: Sighting;
  after: Sighting;
  windowMs: number;
}

/**
 * Where a wallet that was changed by others as well moved by just the effect of the write;
 * undefined when it did not, or not only once. Whatever the balance was off by before stays as it
 * is: only what changes between two looks counts.
 * @param looks oldest first, all of the time asked about
 */
export function stepOf(observations: readonly Sighting[], asked: Asked): Step | undefined {
  const plain = observations.filter((observation) => observation.plain);
  // The newest look has to tell whether it stayed.
  if (plain.at(-1) !== observations.at(-1)) return undefined;
  const from = plain.findLastIndex(({ endedAt }) => endedAt <= asked.sentAt);
  if (from < 0) return undefined;
  const gaps = plain
    .slice(from + 1)
    .map((after, i) => ({ before: plain[from + i] ?? after, after }));
  const moved = gaps.map(({ before, after }) => after.residual - before.residual);
  const steps = gaps.filter((_, i) => moved[i] === asked.effect);
  const [only] = steps;
  const takenBack = moved.some((change) => change === -asked.effect);
  return only && steps.length === 1 && !takenBack
    ? { ...only, windowMs: gapMs(only.before, only.after, asked) }
    : undefined;
}

/** A look is true at some instant from its start less the read lag to its end. */
function gapMs(before: Sighting, after: Sighting, { readLagMs }: Asked): number {
  return after.endedAt - (before.startedAt - readLagMs);
}

function shownWithin(plain: readonly Sighting[], asked: Asked): number | undefined {
  const at = plain.findLastIndex(({ residual }) => residual !== asked.effect);
  const [before, first] = [plain[at], plain[at + 1]];
  if (before?.residual !== 0n || !first) return undefined;
  // What showed before the write was sent is not its effect.
  return first.endedAt < asked.sentAt ? Number.POSITIVE_INFINITY : gapMs(before, first, asked);
}

function hiddenWithin(plain: readonly Sighting[], asked: Asked): number | undefined {
  const { sentAt, quietAt } = asked;
  const from = plain.findLastIndex(({ endedAt }) => endedAt <= sentAt);
  const to = plain.findIndex(({ startedAt }) => startedAt >= quietAt);
  if (from < 0 || to < 0) return undefined;
  const within = plain.slice(from, to + 1);
  if (within.some(({ residual }) => residual !== 0n)) return undefined;
  const gaps = within
    .slice(1)
    .map((observation, i) => gapMs(within[i] ?? observation, observation, asked));
  return Math.max(...gaps);
}
