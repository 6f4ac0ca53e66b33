/**
 * Openings and what was learned after them. Pure.
 *
 * An opening is what an observation showed beyond our own executed writes. A write that happened
 * before
 * that observation and comes to the ledger only later (a report from elsewhere, a decision of
 * people, a
 * reversal) is in the balance that the observation showed: it posts together with the equal
 * correction of
 * the opening, so that the wallet's balance does not move. Whether it was in the opening's sum
 * already is told by the account's version in the snapshot that judged it, never by clocks.
 */

import { addressKey } from '../kernel/addresses.ts';
import { sumOf } from '../kernel/amounts.ts';
import type { Instant } from '../kernel/clock.ts';
import { accountKey, type Effect, type Operation } from '../operations/operations.ts';
import type { PostingRequest } from './posting-request.ts';

/** An opening that was wanted, as far as later facts need it. */
export interface Opening {
  account: string;
  /** The start of the observation that it rests on. */
  seenAt: Instant;
  effectiveAt: Instant;
}

/** The name under which the opening of a wallet is wanted: once, whichever stage asks. */
export function openingId(addr: string): string {
  return `opening:${addressKey(addr)}`;
}

/** Bases of an outcome that people brought, maybe long after it took effect. */
export const LATE_BASES: readonly string[] = ['reported', 'decision'];

/**
 * True for a posting that an opening may have been computed without: what people reported or
 * decided, and whatever is taken back or posted again.
 */
export function isLate(operation: Operation, timesPosted: number): boolean {
  const { source, effectiveBasis } = operation;
  if (source === 'report' || timesPosted > 0) return true;
  return effectiveBasis !== null && LATE_BASES.includes(effectiveBasis);
}

/**
 * True while an operation waits to be posted together with the equal correction of the opening, so
 * that for an observation it changes nothing.
 * @param before the start of the observation that the opening rests on, or will rest on
 */
export function isHeldByOpening(
  operation: Operation,
  timesPosted: number,
  before: Instant,
): boolean {
  const isDue = operation.inLedger !== isPosted(timesPosted);
  return isDue && isLate(operation, timesPosted) && happenedAt(operation) < before;
}

/** Postings alternate: the first puts the operation into the ledger, the second takes it out. */
export function isPosted(timesPosted: number): boolean {
  return timesPosted % 2 === 1;
}

/** When it happened at the latest, as far as known. */
export function happenedAt(operation: Operation): Instant {
  return operation.sentAt ?? operation.effectiveAt ?? operation.recordedAt;
}

/**
 * The corrections that one posting of an operation needs, one for each wallet that was opened by a
 * look after it.
 * @param openings by account key
 */
export function correctionsOf(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
): PostingRequest[] {
  if (!isLate(operation, timesPosted)) return [];
  const at = happenedAt(operation);
  const posting = timesPosted + 1;
  return [...new Set(effects.map(({ account }) => accountKey(account)))].flatMap((key) => {
    const opening = openings.get(key);
    // A wallet that pays itself has two legs, and its balance stays.
    const amount = sumOf(
      effects.flatMap((effect) => (accountKey(effect.account) === key ? effect.amount : [])),
    );
    if (!opening || at >= opening.seenAt || amount === 0n) return [];
    return [correctionOf(opening, { operationId: operation.id, posting, amount })];
  });
}

/**
 * True for a write that the openings of all its wallets hold: those that there are, and those to
 * come where it happened before that instant.
 */
export function isAbsorbed(
  operation: Operation,
  accounts: readonly string[],
  openings: ReadonlyMap<string, Opening>,
  before: Instant,
): boolean {
  const at = happenedAt(operation);
  const held = (account: string) => at < (openings.get(accountKey(account))?.seenAt ?? before);
  return accounts.length > 0 && accounts.every(held);
}

/** What an operation brought to an account behind the back of an opening. */
export interface Overlooked {
  postingRequestId: string;
  operationId: string;
  posting: number;
  amount: bigint;
}

/** The correction for an entry that the opening does not know of. */
export function correctionOf(
  opening: Opening,
  entry: Omit<Overlooked, 'postingRequestId'>,
): PostingRequest {
  const { account, effectiveAt } = opening;
  const { operationId, posting, amount } = entry;
  return {
    id: `${accountKey(account).replace(/^wallet:/, 'opening:')}:${operationId}:${posting}`,
    kind: 'opening',
    account,
    counter: 'opening',
    amount: -amount,
    effectiveAt,
    effectiveBasis: 'observed',
    requestedBy: 'ledger',
    reason: `${operationId} took effect before first sight`,
  };
}
