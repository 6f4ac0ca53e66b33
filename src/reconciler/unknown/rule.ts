/**
 * What the evidence says about lost answers. Pure.
 *
 * Token writes are solved jointly over all wallets that they connect: an explanation is a set of
 * shown writes that makes every wallet come out right. The truth is one of them, so what all of
 * them say of a write is a candidate; it settles when a second, later look agrees.
 */
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from './subsets.ts';

/** A wallet of a component at its newest look. */
export interface WalletEvidence {
  key: string;
  /** How far it is off without the writes that the look may or may not show. */
  residual: bigint;
  /** Those writes: the component's own, and whatever else is open or under way on this wallet. */
  optional: readonly { id: string; effect: bigint; settled: boolean }[];
  observationId: string;
  startedAt: Instant;
  endedAt: Instant;
}

/** By all wallets of a write, by none, or explanations differ and wallets do. */
export type Shown = 'all' | 'none' | 'open';

/** More explanations than that say nothing. */
const EXPLANATIONS_MAX = 64;

export interface Explanation {
  /** By operation, as all explanations have it. */
  shown: ReadonlyMap<string, Shown>;
  observationIds: string[];
  /**
   * The earliest start and the latest end among the looks: a later one must start after that end.
   */
  startedAt: Instant;
  endedAt: Instant;
}

/** Whether the writes that the look may show can make this wallet come out right by itself. */
export function canBeExplained({ residual, optional }: WalletEvidence): boolean {
  const vectors = optional.map(({ effect }) => [effect]);
  return subsetsWithSum(vectors, [residual], 1).length > 0;
}

/**
 * What all explanations of a component have in common, or why nothing can be said. A write whose
 * fate is settled, one way or the other, is shown by all of its wallets or by none; any other one
 * may be shown by one and not yet by the next, so it counts once per wallet.
 */
export function solveJointly(
  wallets: readonly WalletEvidence[],
): Explanation | 'none' | 'several' | 'too_many' {
  const vectors = new Map<string, { id: string; vector: bigint[] }>();
  for (const [d, { key, optional }] of wallets.entries()) {
    for (const { id, effect, settled } of optional) {
      // What changes nothing here is neither shown nor missing.
      if (effect === 0n) continue;
      const name = settled ? id : `${id} ${key}`;
      const entry = vectors.get(name) ?? { id, vector: wallets.map(() => 0n) };
      entry.vector[d] = effect;
      vectors.set(name, entry);
    }
  }
  const items = [...vectors.values()];
  const found = subsetsWithSum(
    items.map(({ vector }) => vector),
    wallets.map(({ residual }) => residual),
    EXPLANATIONS_MAX,
  );
  if (found === 'too_many') return found;
  if (found.length === 0) return 'none';
  if (found.length === EXPLANATIONS_MAX) return 'several';
  const shown = new Map<string, Shown>();
  for (const chosen of found)
    for (const [i, { id }] of items.entries()) {
      const here = chosen.includes(i) ? 'all' : 'none';
      shown.set(id, (shown.get(id) ?? here) === here ? here : 'open');
    }
  return {
    shown,
    observationIds: wallets.map((w) => w.observationId),
    startedAt: Math.min(...wallets.map((w) => w.startedAt)),
    endedAt: Math.max(...wallets.map((w) => w.endedAt)),
  };
}

/** More writes beside it make every amount a possible one. */
const LIKE_MAX = 6;

/**
 * The sizes of an outside change that would make a wallet tell the wrong story about a write: its
 * own amount, alone or together with what else the look may show. Undefined when any size might.
 */
export function likeAmounts(
  operationId: string,
  optional: readonly { id: string; effect: bigint }[],
): bigint[] | undefined {
  const others = optional.filter(({ id }) => id !== operationId);
  const own = optional.find(({ id }) => id === operationId)?.effect ?? 0n;
  if (others.length > LIKE_MAX || own === 0n) return undefined;
  let sums = new Set([own]);
  for (const { effect } of others)
    sums = new Set([...sums].flatMap((sum) => [sum, sum + effect, sum - effect]));
  return [...new Set([...sums].map((sum) => (sum < 0n ? -sum : sum)))].filter((sum) => sum !== 0n);
}

/** Outside changes of some sizes, and the wallet-time in which they were counted. */
export interface OutsideHistory {
  changes: number;
  observedMs: number;
}

/** What all other wallets teach counts at most as much as so long a time of one's own. */
const POOL_MS_MAX = 30 * 86_400_000;

/**
 * The chance that an outside change of just this size happened in the window: its rate times the
 * window. The rate is the mean of a Gamma posterior: the wallet's own changes of that size in its
 * own time, on top of one change in the time that one takes over all other wallets (empirical Bayes
 * as in the polling study, 2.5).
 */
export function chanceOfCoincidence(
  own: OutsideHistory,
  pool: OutsideHistory,
  windowMs: number,
): number {
  const prior = Math.min(POOL_MS_MAX, Math.max(0, pool.observedMs) / (pool.changes + 1));
  const observed = Math.max(0, own.observedMs) + prior;
  if (observed <= 0) return 1;
  return Math.min(1, ((own.changes + 1) / observed) * Math.max(0, windowMs));
}

/** One-sided evidence is enough below this chance (design, section 4, reconciler). */
export const COINCIDENCE_MAX = 1e-4;
