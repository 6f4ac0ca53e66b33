/**
 * What the evidence says about lost answers. Pure.
 *
 * Token writes are solved jointly over all wallets that they connect: an explanation is a set of
 * shown writes that makes every wallet come out right. The truth is one of them, so what all of
 * them say of a write is a candidate; it settles when a second, later look agrees. NFT writes
 * follow the evidence table of the polling study, 3.4.
 */
import type { Operation } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import { subsetsWithSum } from './subsets.ts';
import { FAILED, hasEffect, sameAddress, type TokenState } from './token-rule.ts';

/** A wallet of a component at its newest look. */
export interface WalletEvidence {
  key: string;
  /** How far it is off without the writes that the look may or may not show. */
  residual: bigint;
  /** Those writes: the component's own, and whatever else is open or under way on this wallet. */
  optional: readonly { id: string; effect: bigint; settled: boolean }[];
  lookId: string;
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
  lookIds: string[];
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
    lookIds: wallets.map((w) => w.lookId),
    startedAt: Math.min(...wallets.map((w) => w.startedAt)),
    endedAt: Math.max(...wallets.map((w) => w.endedAt)),
  };
}

/**
 * The chance that an outside change of just this amount happened in the window, bounded from above
 * by the wallet's learned rate of outside changes: (changes + 1) / observed time, times the window.
 */
export function chanceOfCoincidence(
  outsideChanges: number,
  observedMs: number,
  windowMs: number,
): number {
  if (observedMs <= 0) return 1;
  return Math.min(1, ((outsideChanges + 1) / observedMs) * windowMs);
}

/** One-sided evidence is enough below this chance (design, section 4, reconciler). */
export const COINCIDENCE_MAX = 1e-4;

/** How the hash of a token stands to the write whose answer was lost. */
export type HashChange =
  /** The hash from before the write. */
  | 'none'
  /** The hash of another operation of ours that came later. */
  | 'other'
  /** A hash that nobody claims. */
  | 'new';

/**
 * What a token says about an NFT write whose answer was lost; undefined when it says nothing yet.
 * @param existed whether the token was seen, or made by us, before the write was sent
 */
export function tokenEvidence(
  operation: Operation,
  token: TokenState | 'absent',
  change: HashChange,
  existed: boolean,
): { outcome: 'executed' | 'not_executed'; cause: string } | undefined {
  const { kind } = operation;
  if (token === 'absent') {
    if (kind === 'burn' && existed) return { outcome: 'executed', cause: 'the token is gone' };
    if (kind === 'mint') return { outcome: 'not_executed', cause: 'there is no such token' };
    return undefined;
  }
  if (change === 'none') return { outcome: 'not_executed', cause: 'the token did not change' };
  if (change === 'other') return undefined;
  if (kind === 'mint') {
    // A number is free again after a mint that the chain failed.
    const free = !existed || preImageOf(operation)?.status === FAILED;
    const ours = sameAddress(operation.toAddr, token.owner) && operation.tokenUri === token.uri;
    return free && ours ? { outcome: 'executed', cause: 'the token exists as asked' } : undefined;
  }
  return kind !== 'burn' && existed && hasEffect(operation, token)
    ? { outcome: 'executed', cause: 'the token shows the effect under a new hash' }
    : undefined;
}

/**
 * What a hash on the token means for a write, by what is known from before and of our other writes.
 */
export function hashChange(
  operation: Operation,
  hash: string | null,
  others: readonly Operation[],
): HashChange {
  if (hash !== null && hash === preImageOf(operation)?.lastTxHash) return 'none';
  const owner = others.find(({ txHash }) => txHash !== null && txHash === hash);
  if (!owner) return 'new';
  const sentAt = operation.sentAt ?? operation.recordedAt;
  return (owner.answeredAt ?? owner.recordedAt) <= sentAt ? 'none' : 'other';
}

/** The token as it was seen before the write was sent, if it was. */
export function preImageOf(
  operation: Operation,
): { lastTxHash: string | null; status: number | null } | undefined {
  const image = operation.preImage;
  if (!image || typeof image !== 'object' || Array.isArray(image)) return undefined;
  const token = image.token;
  if (!token || typeof token !== 'object' || Array.isArray(token)) return undefined;
  const { lastTxHash, status } = token;
  return {
    lastTxHash: typeof lastTxHash === 'string' ? lastTxHash : null,
    status: status === undefined || status === null ? null : Number(status),
  };
}
