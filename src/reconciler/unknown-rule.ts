/**
 * What the evidence says about lost answers. Pure.
 *
 * Token writes are solved jointly over all wallets that they connect: an explanation is a set of executed
 * writes that makes every wallet come out right. Exactly one explanation is a candidate; it settles when
 * a second, later look agrees. NFT writes follow the evidence table of the polling study, 3.4.
 */
import type { Operation } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import { OPEN_MAX, subsetsWithSum } from './subsets.ts';
import { hasEffect, sameAddress, type TokenState } from './token-rule.ts';

/** A wallet of a component at its newest look: how far it is off without the unknown writes. */
export interface WalletEvidence {
  key: string;
  residual: bigint;
  /** By how much each unknown write of the component would change it, in their order. */
  effects: readonly bigint[];
  lookId: string;
  startedAt: Instant;
  endedAt: Instant;
}

export interface Explanation {
  /** One per write, in order: true when executed. */
  executed: boolean[];
  lookIds: string[];
  /** The earliest start and the latest end among the looks: a later one must start after that end. */
  startedAt: Instant;
  endedAt: Instant;
}

/** The one explanation of a component, or why there is none. */
export function solveJointly(
  count: number,
  wallets: readonly WalletEvidence[],
): Explanation | 'none' | 'several' | 'too_many' {
  if (count > OPEN_MAX) return 'too_many';
  const vectors = Array.from({ length: count }, (_, i) => wallets.map((w) => w.effects[i] ?? 0n));
  const found = subsetsWithSum(
    vectors,
    wallets.map((w) => w.residual),
    2,
  );
  const [only, second] = found;
  if (!only) return 'none';
  if (second) return 'several';
  return {
    executed: Array.from({ length: count }, (_, i) => only.includes(i)),
    lookIds: wallets.map((w) => w.lookId),
    startedAt: Math.min(...wallets.map((w) => w.startedAt)),
    endedAt: Math.max(...wallets.map((w) => w.endedAt)),
  };
}

/**
 * The chance that an outside change of just this amount happened in the window, bounded from above by the
 * wallet's learned rate of outside changes: (changes + 1) / observed time, times the window.
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

/** What a token says about an NFT write whose answer was lost; undefined when it says nothing yet. */
export function tokenEvidence(
  operation: Operation,
  token: TokenState | 'absent',
  foreignHash: boolean,
): { outcome: 'executed' | 'not_executed'; cause: string } | undefined {
  const before = preImageOf(operation);
  if (token === 'absent') {
    if (operation.kind === 'burn') return { outcome: 'executed', cause: 'the token is gone' };
    if (operation.kind === 'mint')
      return { outcome: 'not_executed', cause: 'there is no such token' };
    return undefined;
  }
  switch (operation.kind) {
    case 'mint': {
      const ours = sameAddress(operation.toAddr, token.owner) && operation.tokenUri === token.uri;
      if (before !== undefined)
        return { outcome: 'not_executed', cause: 'the token existed before' };
      return ours && !foreignHash
        ? { outcome: 'executed', cause: 'the token exists as asked' }
        : undefined;
    }
    case 'transfer_from':
    case 'set_extra_data': {
      const moved = token.lastTxHash !== before?.lastTxHash;
      if (hasEffect(operation, token) && moved && !foreignHash && before) {
        return { outcome: 'executed', cause: 'the token shows the effect under a new hash' };
      }
      if (before && !moved) return { outcome: 'not_executed', cause: 'the token did not change' };
      return undefined;
    }
    case 'burn':
      return before && token.lastTxHash === before.lastTxHash
        ? { outcome: 'not_executed', cause: 'the token did not change' }
        : undefined;
    default:
      return undefined;
  }
}

/** The token as it was seen before the write was sent, if it was. */
function preImageOf(operation: Operation): { lastTxHash: string | null } | undefined {
  const image = operation.preImage;
  if (!image || typeof image !== 'object' || Array.isArray(image)) return undefined;
  const token = image.token;
  if (!token || typeof token !== 'object' || Array.isArray(token)) return undefined;
  return { lastTxHash: typeof token.lastTxHash === 'string' ? token.lastTxHash : null };
}
