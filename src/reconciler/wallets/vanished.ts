/**
 * Wallets that vanish: the service no longer shows one, or shows it as withdrawn with another
 * balance than expected, in two observations in a row, while the ledger holds a balance of it. It
 * ends when the wallet is observed again, or when nothing is left in the ledger. It says nothing
 * about writes on the wallet.
 */
import type { Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { UnprocessedObservation } from '../../observer/observer.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { type Comparison, includes } from './rule.ts';
import { findWallet, positionsOf, saveWallet, stateOf, type Wallet } from './wallet.ts';

/** The status of a member who has withdrawn. */
const WITHDRAWN = 9;

type Times = Pick<UnprocessedObservation, 'unchangedSince' | 'startedAt' | 'endedAt'>;

/** Evaluates one observation that shows no such wallet. Returns the events to emit. */
export async function evaluateAbsentWallet(
  tx: Tx,
  deps: Deps,
  observation: UnprocessedObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const key = observation.target.slice('wallet:'.length);
  const before = await findWallet(tx, key);
  if (!before || before.observedAt === null || before.observedAt >= observation.startedAt)
    return [];
  const positions = await positionsOf(tx, [key]);
  const { ledgerBalance = 0n, unposted = 0n } = positions.get(key) ?? {};
  const wallet = { ...before };
  const seen = { isGone: true, reason: 'not_found', ledger: ledgerBalance + unposted } as const;
  const events = stepVanished(wallet, seen, observation);
  if (!isSecond(observation)) {
    const poll = { polledAt: observation.startedAt, now };
    const at = deps.polls.nextAt({ kind: 'confirmation', since: now }, poll);
    deps.pollBy(observation.target, at);
  }
  if (events.length === 0) return [];
  const isVanished = wallet.vanishedAt !== null;
  await saveWallet(tx, { ...wallet, verdict: isVanished ? 'vanished' : 'explained', cause: null });
  return events;
}

/** The same for an observation that shows the wallet; changes `wallet`. */
export function stepSeen(wallet: Wallet, comparison: Comparison, observation: Times): EventDraft[] {
  const isGone = wallet.status === WITHDRAWN && !includes(comparison.difference, 0n);
  const ledger = wallet.ledgerAtObservation ?? 0n;
  return stepVanished(wallet, { isGone, reason: 'withdrawn', ledger }, observation);
}

interface Seen {
  isGone: boolean;
  reason: 'not_found' | 'withdrawn';
  /** What the ledger holds of the wallet. */
  ledger: bigint;
}

/** Whether another poll showed the same before. */
function isSecond({ unchangedSince, startedAt }: Times): boolean {
  return startedAt > unchangedSince;
}

/** Changes when a wallet has vanished. */
function stepVanished(
  wallet: Wallet,
  { isGone, reason, ledger }: Seen,
  observation: Times,
): EventDraft[] {
  const { vanishedAt } = wallet;
  const { endedAt, unchangedSince } = observation;
  const holds = isGone && ledger !== 0n;
  if (vanishedAt === null) {
    if (!holds || !isSecond(observation)) return [];
    wallet.vanishedAt = endedAt;
    return [vanishedEvent(wallet, { reason, ledger, absentSince: unchangedSince })];
  }
  if (holds) return [];
  wallet.vanishedAt = null;
  const how = isGone ? 'emptied' : 'observed';
  return [reappearedEvent(wallet, { how, ledger, vanishedAt, at: endedAt })];
}

function vanishedEvent(
  wallet: Wallet,
  { reason, ledger, absentSince }: Omit<Seen, 'isGone'> & { absentSince: Instant },
): EventDraft {
  const { key, addr, observedAt, vanishedAt } = wallet;
  return {
    type: 'wallet.vanished',
    subject: `wallet:${key}`,
    occurredAt: vanishedAt ?? 0,
    data: {
      addr,
      reason,
      ledger_balance: decimalText(ledger),
      last: stateOf(wallet),
      last_observed_at: isoText(observedAt ?? 0),
      absent_since: isoText(absentSince),
    },
  };
}

function reappearedEvent(
  wallet: Wallet,
  input: { how: 'observed' | 'emptied'; ledger: bigint; vanishedAt: Instant; at: Instant },
): EventDraft {
  const { how, ledger, vanishedAt, at } = input;
  return {
    type: 'wallet.reappeared',
    subject: `wallet:${wallet.key}`,
    occurredAt: at,
    data: {
      addr: wallet.addr,
      how,
      ledger_balance: decimalText(ledger),
      current: how === 'observed' ? stateOf(wallet) : null,
      vanished_at: isoText(vanishedAt),
    },
  };
}
