/**
 * The balance proof of one wallet: whether an imported history and the observations can both be
 * true. Pure.
 *
 * What took effect before the first observation is part of the opening, so an import moves it out
 * of the opening: the new opening is the old one less those movements, and from there on the
 * balance must never be negative. What took effect later must add up to what the observations show
 * beyond the ledger, which is the drift.
 */
import type { Instant } from '../kernel/clock.ts';

/** A change of the balance of a wallet; `line` is absent for one that the ledger has already. */
export interface Movement {
  at: Instant;
  amount: bigint;
  line?: number;
}

/** What the daemon knows of a wallet. */
export interface Known {
  /** Null without an opening. */
  opening: bigint | null;
  /** The observation that the opening rests on. */
  openedAt: Instant | null;
  observedAt: Instant | null;
  drift: bigint;
  /** Entries before `openedAt` that the ledger has already. */
  earlier: readonly Movement[];
}

export type Proof =
  | { verdict: 'proved'; opening: bigint }
  /** Its balance would have been negative from that line on. */
  | {
      verdict: 'impossible';
      opening: bigint;
      was: bigint;
      line: number;
      at: Instant;
      balance: bigint;
    }
  /** Since the first observation the file moves `moved`, the observations show `drift`. */
  | { verdict: 'contradicted'; opening: bigint; moved: bigint; drift: bigint; line: number }
  /** Nothing is observed; the opening must be at least that. */
  | { verdict: 'unobserved'; least: bigint };

export type FailedProof = { addr: string } & Record<string, string | number>;

/** @param movements of the file, as `inOrder` sorts them */
export function proveWallet(known: Known, movements: readonly Movement[]): Proof {
  const { opening: was, openedAt, observedAt, drift } = known;
  if (was === null || openedAt === null)
    return { verdict: 'unobserved', least: leastOf(movements) };
  const before = movements.filter(({ at }) => at < openedAt);
  const opening = was - sum(before);
  const low = firstNegative(opening, inOrder([...known.earlier, ...before]));
  if (low && before.length > 0) return { verdict: 'impossible', opening, was, ...low };
  const later = movements.filter(({ at }) => at >= openedAt && at < (observedAt ?? openedAt));
  const [first] = later;
  const moved = sum(later);
  if (first && moved !== drift)
    return { verdict: 'contradicted', opening, moved, drift, line: first.line ?? 0 };
  return { verdict: 'proved', opening };
}

/** By time; at one instant what increases the balance first, since the order is not known. */
export function inOrder(movements: Movement[]): Movement[] {
  return movements.sort((a, b) => a.at - b.at || Number(a.amount < 0n) - Number(b.amount < 0n));
}

/** The first line of the file at which the balance is negative, or after which it became so. */
function firstNegative(opening: bigint, movements: readonly Movement[]) {
  let balance = opening;
  let line: number | undefined;
  let low = opening < 0n ? opening : undefined;
  for (const movement of movements) {
    balance += movement.amount;
    line = movement.line ?? line;
    if (balance < 0n) low ??= balance;
    if (low !== undefined && line !== undefined) return { line, at: movement.at, balance: low };
  }
  return undefined;
}

function leastOf(movements: readonly Movement[]): bigint {
  let [balance, least] = [0n, 0n];
  for (const { amount } of movements) {
    balance += amount;
    if (-balance > least) least = -balance;
  }
  return least;
}

function sum(movements: readonly Movement[]): bigint {
  return movements.reduce((total, { amount }) => total + amount, 0n);
}
