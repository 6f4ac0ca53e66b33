/**
 * Whether something else could hold the same difference as an executed operation that the service
 * does not show: then a balance does not confirm it. Pure.
 *
 * A lost operation makes the balance smaller by its effect. Hidden it is only if drifts hold that,
 * alone or with further lost operations, or if unknown operations ended otherwise than assumed.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Range } from './rule.ts';

/** An executed operation that is not settled, and its effect on the wallet. */
export interface Unsettled {
  id: string;
  effect: bigint;
  sentAt: Instant;
  tookEffectAt: Instant;
}

/** What on a wallet might hold the effect of an operation. */
export interface Doubts {
  /** Open drifts, with the end of their windows. */
  drifts: readonly (Range & { id: string; windowTo: Instant })[];
  /** Unknown and undecided operations, and until when the service may have applied them. */
  unknown: readonly { id: string; effect: bigint; until: Instant }[];
  /** All of the wallet. */
  unsettled: readonly Unsettled[];
}

/** The drifts and unknown operations that could hold the same difference, by id. */
export interface HeldBy {
  drifts: string[];
  operations: string[];
}

/** Combinations of drifts and unknown operations that are tried; beyond, any may hold it. */
const COMBINATIONS_MAX = 243;
/** Further operations whose subsets are tried; of more only the extremes of the sums. */
const OTHERS_MAX = 8;

/** What could hold the effect of the operation on this wallet; undefined if nothing could. */
export function heldBy(operation: Unsettled, doubts: Doubts): HeldBy | undefined {
  // A drift from before it took effect, or a write that ended before it was sent, is no doubt.
  const drifts = doubts.drifts.filter(({ windowTo }) => operation.tookEffectAt < windowTo);
  const unknown = doubts.unknown.filter(({ until }) => operation.sentAt < until);
  const named = { drifts: drifts.map(({ id }) => id), operations: unknown.map(({ id }) => id) };
  if (drifts.length + unknown.length === 0) return undefined;
  if (2 ** drifts.length * 3 ** unknown.length > COMBINATIONS_MAX) return named;
  const lost = sumsWith(operation, othersOf(operation, { drifts, unknown }, doubts.unsettled));
  const held = combinations(drifts, unknown).some(({ min, max }) =>
    lost.some((sum) => sum.min <= -min && -max <= sum.max),
  );
  return held ? named : undefined;
}

/** The other operations that the same drifts or unknown operations may hold. */
function othersOf(
  { id }: Unsettled,
  { drifts, unknown }: Pick<Doubts, 'drifts' | 'unknown'>,
  unsettled: readonly Unsettled[],
): bigint[] {
  const lastDrift = Math.max(...drifts.map(({ windowTo }) => windowTo));
  const lastUnknown = Math.max(...unknown.map(({ until }) => until));
  return unsettled.flatMap((other) => {
    const may = other.tookEffectAt < lastDrift || other.sentAt < lastUnknown;
    return may && other.id !== id ? other.effect : [];
  });
}

/** The sums of the operation and any of the others; beyond a few their extremes as one range. */
function sumsWith({ effect }: Unsettled, others: readonly bigint[]): Range[] {
  if (others.length > OTHERS_MAX) {
    const range = { min: effect, max: effect };
    for (const other of others) range[other < 0n ? 'min' : 'max'] += other;
    return [range];
  }
  let sums = [effect];
  for (const other of others) sums = [...new Set(sums.flatMap((sum) => [sum, sum + other]))];
  return sums.map((sum) => ({ min: sum, max: sum }));
}

/** The sums of drifts and of unknown operations that ended otherwise, each but the empty one. */
function combinations(drifts: Doubts['drifts'], unknown: Doubts['unknown']): Range[] {
  let sums: Range[] = [{ min: 0n, max: 0n }];
  const plus = ({ min, max }: Range, by: Range) => ({ min: min + by.min, max: max + by.max });
  for (const drift of drifts) sums = [...sums, ...sums.map((sum) => plus(sum, drift))];
  for (const { effect } of unknown) {
    const [up, down] = [effect, -effect].map((by) =>
      sums.map((sum) => plus(sum, { min: by, max: by })),
    );
    sums = [...sums, ...(up ?? []), ...(down ?? [])];
  }
  return sums.slice(1);
}
