/**
 * Openings, and what is posted for a wallet after its opening. Pure.
 *
 * The opening of a wallet is the balance that an observation showed minus our own executed writes.
 * A backdated write took effect before that observation but is posted later (it was reported or
 * decided, or is a reversal), so the observed balance includes it already. It is posted together
 * with a correction of the opening by the opposite amount, and the balance of the wallet stays.
 * Whether the opening includes an entry is decided by the version of the account when the opening
 * was computed, never by clocks.
 *
 * An opening takes effect before every other entry of its account, so that balances as of any time
 * are right, and unknown before it. An earlier entry moves it: it is taken back at its time, and
 * posted again just before the entry.
 */
import { addressKey } from '../kernel/addresses.ts';
import { sumOf } from '../kernel/amounts.ts';
import type { Instant } from '../kernel/clock.ts';
import { accountKey, type Effect, type Operation } from '../operations/operations.ts';
import type { PostingRequest } from './posting.ts';

/** An opening that was requested, posted or not. */
export interface Opening {
  account: string;
  /** The start of the observation that it rests on. */
  seenAt: Instant;
  /** Since when the balance is known: where the opening stands with its corrections. */
  effectiveAt: Instant;
}

/** An opening that has to stand earlier. */
export interface OpeningMove extends Opening {
  to: Instant;
}

/** The id of the posting request for the opening of a wallet, so that there is only one. */
export function openingId(addr: string): string {
  return `opening:${addressKey(addr)}`;
}

/** Effective bases of outcomes that may become known long after they took effect. */
export const BACKDATED_BASES: readonly string[] = ['reported', 'decision'];

/**
 * True for a posting that may have taken effect before an opening that was computed without it: of
 * a reported or decided operation, a reversal, or a posting after a reversal.
 */
export function isBackdated(operation: Operation, timesPosted: number): boolean {
  const { source, effectiveBasis } = operation;
  if (source === 'report' || timesPosted > 0) return true;
  return effectiveBasis !== null && BACKDATED_BASES.includes(effectiveBasis);
}

/** Postings alternate: odd ones post the operation, even ones reverse it. */
export function isPosted(timesPosted: number): boolean {
  return timesPosted % 2 === 1;
}

/** The earliest instant at which the operation can have taken effect, as far as known. */
function earliestEffectAt(operation: Operation): Instant {
  return operation.sentAt ?? operation.effectiveAt ?? operation.recordedAt;
}

/**
 * The openings that have to move, because an entry takes effect at or before them.
 * @param entries accounts with the time of an entry of theirs
 */
export function movesOf(
  openings: ReadonlyMap<string, Opening>,
  entries: readonly { account: string; effectiveAt: Instant }[],
): OpeningMove[] {
  const first = new Map<string, Instant>();
  for (const { account, effectiveAt } of entries) {
    const key = accountKey(account);
    first.set(key, Math.min(effectiveAt, first.get(key) ?? effectiveAt));
  }
  return [...first].flatMap(([key, at]) => {
    const opening = openings.get(key);
    return opening && at <= opening.effectiveAt ? [{ ...opening, to: at - 1 }] : [];
  });
}

/** The two requests that move an opening of this amount; one is enough for an amount of zero. */
export function requestsOf(
  { account, effectiveAt, to }: OpeningMove,
  amount: bigint,
): PostingRequest[] {
  const moved = { ...openingRequest(account), reason: 'an entry took effect before the opening' };
  const id = `${accountKey(account).replace(/^wallet:/, 'opening:')}:moved:${to}`;
  const earlier = { ...moved, id, amount, effectiveAt: to };
  const back = { ...moved, id: `${id}:back`, amount: -amount, effectiveAt };
  return amount === 0n ? [earlier] : [earlier, back];
}

/**
 * The corrections that one posting of an operation needs: one for each wallet whose opening was
 * observed after the operation took effect.
 * @param openings by account key
 */
export function correctionsOf(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
): PostingRequest[] {
  return isBackdated(operation, timesPosted)
    ? lateCorrectionsOf(operation, timesPosted, effects, openings)
    : [];
}

/** The same for a posting that no opening can have included. */
export function lateCorrectionsOf(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
): PostingRequest[] {
  const at = earliestEffectAt(operation);
  const posting = timesPosted + 1;
  return [...new Set(effects.map(({ account }) => accountKey(account)))].flatMap((key) => {
    const opening = openings.get(key);
    // A wallet that pays itself has two effects that add up to zero.
    const amount = sumOf(
      effects.flatMap((effect) => (accountKey(effect.account) === key ? effect.amount : [])),
    );
    if (!opening || at >= opening.seenAt || amount === 0n) return [];
    return [correctionOf(opening, { operationId: operation.id, posting, amount })];
  });
}

/**
 * True for a write that the openings of all its wallets include.
 * @param before stands for the openings that do not exist yet
 */
export function isIncludedInOpenings(
  operation: Operation,
  accounts: readonly string[],
  openings: ReadonlyMap<string, Opening>,
  before: Instant,
): boolean {
  const at = earliestEffectAt(operation);
  const isIncluded = (account: string) =>
    at < (openings.get(accountKey(account))?.seenAt ?? before);
  return accounts.length > 0 && accounts.every(isIncluded);
}

/** What an operation posted to an account that its opening does not include. */
export interface MissedEntry {
  postingRequestId: string;
  operationId: string;
  posting: number;
  amount: bigint;
}

/** The correction for an entry that the opening does not include. */
export function correctionOf(
  opening: Opening,
  entry: Omit<MissedEntry, 'postingRequestId'>,
): PostingRequest {
  const { account, effectiveAt } = opening;
  const { operationId, posting, amount } = entry;
  return {
    ...openingRequest(account),
    id: `${accountKey(account).replace(/^wallet:/, 'opening:')}:${operationId}:${posting}`,
    amount: -amount,
    effectiveAt,
    reason: `${operationId} took effect before the first observation`,
  };
}

/** What the ledger's own requests about an opening have in common. */
function openingRequest(account: string) {
  return {
    kind: 'opening' as const,
    account,
    counter: 'opening',
    effectiveBasis: 'observed',
    requestedBy: 'ledger',
  };
}
