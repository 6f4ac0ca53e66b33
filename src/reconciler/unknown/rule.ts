/**
 * Solves unknown token writes jointly over all wallets that they connect. An explanation is a set
 * of operations that accounts for the balance of every wallet; what all explanations agree on is
 * the finding. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';

export interface PossibleEffect {
  id: string;
  effect: bigint;
  /** True after quiescence: all of its wallets show it, or none does. */
  quiescent: boolean;
}

/** A wallet of a component at its newest observation. */
export interface WalletEvidence {
  key: string;
  /** Observed minus expected balance, without the possible operations. */
  residual: bigint;
  /** The component's operations and all others that are possible on this wallet. */
  possible: readonly PossibleEffect[];
  observationId: string;
  startedAt: Instant;
  endedAt: Instant;
}

/** Shown by all wallets of the operation, by none, or not determined. */
export type Shown = 'all' | 'none' | 'open';

const EXPLANATIONS_MAX = 64;

export interface Explanation {
  /** By operation, what all explanations agree on. */
  shown: ReadonlyMap<string, Shown>;
  observationIds: string[];
  /** The earliest start and the latest end of these observations. */
  startedAt: Instant;
  endedAt: Instant;
}

/** Whether a subset of the possible operations explains this wallet alone. */
export function canBeExplained({ residual, possible }: WalletEvidence): boolean {
  const vectors = possible.map(({ effect }) => [effect]);
  const found = subsetsWithSum(vectors, [residual], 1);
  return found === 'too_many' || found.length > 0;
}

/**
 * What all explanations of a component agree on, or why there is no finding. A quiescent operation
 * is one item over all wallets; any other may show on one wallet first, so it is an item per
 * wallet.
 */
export function solveJointly(
  wallets: readonly WalletEvidence[],
): Explanation | 'none' | 'several' | 'too_many' {
  const vectors = new Map<string, { id: string; vector: bigint[] }>();
  for (const [d, { key, possible }] of wallets.entries()) {
    for (const { id, effect, quiescent } of possible) {
      if (effect === 0n) continue;
      const name = quiescent ? id : `${id} ${key}`;
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

const LIKE_MAX = 6;

/**
 * The sizes of an outside change that would lead to a wrong finding: the operation's own amount,
 * alone or combined with other possible operations. Undefined when any size might.
 */
export function likeAmounts(
  operationId: string,
  possible: readonly { id: string; effect: bigint }[],
): bigint[] | undefined {
  const others = possible.filter(({ id }) => id !== operationId);
  const own = possible.find(({ id }) => id === operationId)?.effect ?? 0n;
  if (others.length > LIKE_MAX || own === 0n) return undefined;
  let sums = new Set([own]);
  for (const { effect } of others)
    sums = new Set([...sums].flatMap((sum) => [sum, sum + effect, sum - effect]));
  return [...new Set([...sums].map((sum) => (sum < 0n ? -sum : sum)))].filter((sum) => sum !== 0n);
}

export interface OutsideHistory {
  changes: number;
  observedMs: number;
}

/** The other wallets count at most as much as so much time of the wallet itself. */
const POOL_MS_MAX = 30 * 86_400_000;

/**
 * The chance that an outside change of this size happened within the bracket: its rate times the
 * bracket. The rate is the mean of a Gamma posterior of the wallet's own changes, with one change
 * per mean interval of all other wallets as the prior (empirical Bayes, polling study, 2.5).
 */
export function chanceOfCoincidence(
  own: OutsideHistory,
  pool: OutsideHistory,
  bracketMs: number,
): number {
  const prior = Math.min(POOL_MS_MAX, Math.max(0, pool.observedMs) / (pool.changes + 1));
  const observed = Math.max(0, own.observedMs) + prior;
  if (observed <= 0) return 1;
  return Math.min(1, ((own.changes + 1) / observed) * Math.max(0, bracketMs));
}

/** One-sided evidence is enough below this chance (design, section 4, reconciler). */
export const COINCIDENCE_MAX = 1e-4;
