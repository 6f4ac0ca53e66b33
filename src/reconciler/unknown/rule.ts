/**
 * Solves unknown token writes jointly over all wallets that they connect. An explanation is a set
 * of operations that accounts for the balance of every wallet; what all explanations agree on is
 * the finding. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';

interface PossibleEffect {
  id: string;
  effect: bigint;
  /** True after quiescence: all of its wallets show it, or none does. */
  quiescent: boolean;
}

/** A wallet of a component at its newest observation. */
export interface WalletEvidence {
  key: string;
  balance: bigint;
  /** Observed minus expected balance, without the possible operations. */
  residual: bigint;
  /** The component's operations and all others that are possible on this wallet. */
  possible: readonly PossibleEffect[];
  observationId: string;
  startedAt: Instant;
  endedAt: Instant;
}

/** Shown by all wallets of the operation, by none, or not determined. */
type Shown = 'all' | 'none' | 'open';

const EXPLANATIONS_MAX = 64;

export interface Explanation {
  /** By operation, what all explanations agree on. */
  shown: ReadonlyMap<string, Shown>;
  observationIds: string[];
  /** The earliest start and the latest end of these observations. */
  startedAt: Instant;
  endedAt: Instant;
}

/**
 * Whether a wallet with too many possible operations for subsets includes one with this effect.
 * Known only where the residual is the sum of all increases, or of all decreases: it includes
 * those, and none of the others.
 */
export function includedAtExtreme(
  effect: bigint,
  residual: bigint,
  { up, down }: { up: bigint; down: bigint },
): boolean | undefined {
  if (residual === up) return effect > 0n;
  return residual === down ? effect < 0n : undefined;
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

/** The polls around the send of an unknown operation on one wallet. */
interface Bracket {
  /** Start of the last poll before the send; undefined when there was none. */
  before: Instant | undefined;
  /** End of the poll that shows the effect, or of the first one after quiescence. */
  after: Instant;
}

/**
 * Whether one wallet alone is enough evidence: the polls around the send are so close to each other
 * that a change made elsewhere by exactly the same amount need not be assumed.
 */
export function isWithin({ before, after }: Bracket, maxMs: number): boolean {
  return before !== undefined && after - before <= maxMs;
}
