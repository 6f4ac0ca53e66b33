/**
 * Evaluates observations of wallets: in one transaction the accepted state, drifts, the posting
 * request of the opening, operations that settle, and the events. The cost does not depend on the
 * history of the wallet: settled operations are in the ledger's balance and are not read.
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { UnprocessedObservation } from '../../observer/observer.ts';
import { endedEvent } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { listOpenDrifts } from '../drifts/drift.ts';
import { waitFor } from '../resolution.ts';
import { totalOf } from './drift-rule.ts';
import { stepDrifts } from './drifts.ts';
import { observedEvents } from './events.ts';
import { type Expected, expectedBalances, listConfirmed, listExecutedBetween } from './expected.ts';
import { findHeld } from './held.ts';
import { takeLateChanges } from './late-changes.ts';
import { openWallet } from './opening.ts';
import { type Comparison, compareBalance, walletRecordOf } from './rule.ts';
import { stepSeen } from './vanished.ts';
import { findWallet, saveWallet, type Wallet } from './wallet.ts';

/** Operations that one observation settles; more are settled by the next one. */
const SETTLED_MAX = 1_000;

/** Evaluates one conclusive observation of a wallet. Returns the events to emit. */
export async function evaluateWallet(
  tx: Tx,
  deps: Deps,
  observation: UnprocessedObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const seen = walletRecordOf(observation);
  const key = observation.target.slice('wallet:'.length);
  // The answer is about another wallet.
  if (addressKey(seen.addr) !== key) return [];
  // Statements that do not need each other are pipelined here and below: one round trip.
  const [before, known] = await Promise.all([findWallet(tx, key), listOpenDrifts(tx, [key])]);
  // An older read never overwrites a newer one; the start of the request counts.
  if (before?.observedAt && before.observedAt >= observation.startedAt) return [];
  const { startedAt, endedAt } = observation;
  const { readLagMs } = deps.settings;
  const wallet: Wallet = {
    ...(before ?? newWallet(key, seen.addr)),
    status: seen.status,
    observedBalance: seen.balance,
    observedAt: startedAt,
    observationEndedAt: endedAt,
    observationId: observation.id,
    evaluatedAt: now,
  };
  if (wallet.verdict === 'vanished') wallet.verdict = 'unopened';
  const opened =
    wallet.openedAt !== null || (await openWallet(tx, wallet, { observation, readLagMs, now }));
  const [expectations, executed] = await Promise.all([
    expectedBalances(tx, [{ key, startedAt, endedAt, opened }], readLagMs),
    listExecutedSince(tx, before, wallet),
  ]);
  const expected = must(expectations.get(key), 'expected balance');
  wallet.ledgerAtObservation = expected.ledger;
  const input = { before, drifts: known, backdated: expected.backdated, observation, now };
  const { drifts, late } = opened
    ? await takeLateChanges(tx, deps, wallet, input)
    : { drifts: known, late: [] };
  const comparison = compareBalance(seen.balance, expected, totalOf(drifts));
  const operations = explainedBy(executed, comparison);
  const events = observedEvents(before, wallet, comparison, { operations, at: endedAt });
  events.push(...late);
  if (opened) {
    if (comparison.result === 'explained') markExplained(wallet, comparison, startedAt);
    const previousId = before?.observationId ?? null;
    const step = { comparison, drifts, observation, previousId, now };
    events.push(...(await stepDrifts(tx, deps, wallet, step)));
  }
  events.push(...stepSeen(wallet, comparison, observation));
  const [, confirmed] = await Promise.all([
    saveWallet(tx, wallet),
    wallet.consistentAt === startedAt ? listConfirmedBy(tx, deps, wallet) : [],
  ]);
  pollAgain(deps, { before, wallet, expected, now });
  const mayBeHeld = drifts.length > 0 || wallet.verdict === 'drifting' || expected.unsure > 0;
  return [...events, ...(await settle(tx, deps, { wallet, confirmed, mayBeHeld, now }))];
}

function newWallet(key: string, addr: string): Wallet {
  return {
    key,
    addr,
    status: null,
    observedBalance: null,
    observedAt: null,
    observationEndedAt: null,
    openedAt: null,
    consistentAt: null,
    quietAt: null,
    ledgerAtObservation: null,
    observationId: null,
    evaluatedAt: null,
    verdict: 'unopened',
    cause: null,
    suspectedMin: null,
    suspectedMax: null,
    suspectedAt: null,
    vanishedAt: null,
  };
}

/** What was executed since the last observation; undefined if the balance is the same. */
async function listExecutedSince(
  tx: Tx,
  before: Wallet | undefined,
  { key, observedBalance, observedAt }: Wallet,
): Promise<string[] | undefined> {
  if (!before?.observedAt || before.observedBalance === observedBalance) return undefined;
  return listExecutedBetween(tx, key, before.observedAt, observedAt ?? 0);
}

/** The operations that explain why the balance differs from the one observed before. */
function explainedBy(executed: string[] | undefined, comparison: Comparison): string[] {
  if (!executed) return [];
  const shown = comparison.result === 'explained' ? comparison.shown : [];
  return [...new Set([...executed, ...shown])];
}

function markExplained(
  wallet: Wallet,
  { unique, quiet }: Extract<Comparison, { result: 'explained' }>,
  startedAt: Instant,
): void {
  const cause = unique ? null : 'several explanations';
  Object.assign(wallet, { verdict: 'explained', cause });
  if (quiet) wallet.quietAt = startedAt;
}

/** The operations that observations of all their wallets confirm. */
function listConfirmedBy(tx: Tx, { settings }: Deps, { key, consistentAt }: Wallet) {
  const { readLagMs } = settings;
  const before = must(consistentAt, 'consistent') - readLagMs;
  return listConfirmed(tx, key, { before, readLagMs, limit: SETTLED_MAX });
}

/** Settles what the balance confirms; what something else could hold waits. */
async function settle(
  tx: Tx,
  deps: Deps,
  input: { wallet: Wallet; confirmed: readonly string[]; mayBeHeld: boolean; now: Instant },
): Promise<EventDraft[]> {
  const { wallet, mayBeHeld, now } = input;
  if (input.confirmed.length === 0) return [];
  const { operations, polls } = deps;
  const held = mayBeHeld ? await findHeld(tx, deps, wallet.key, input.confirmed) : new Map();
  await operations.hold(tx, held, now);
  const confirmed = input.confirmed.filter((id) => !held.has(id));
  const cause = `balance of ${wallet.addr} confirms it`;
  const moved = await operations.move(
    tx,
    confirmed.map((id) => ({ id, to: 'settled', at: now, cause, settledAt: now })),
  );
  const shownAt = must(wallet.consistentAt, 'consistent');
  // An earlier poll may have shown it as well: only the longest possible wait is known.
  tx.afterCommit(() => {
    for (const operation of moved) polls.learn(waitFor(operation), { notAt: null, shownAt });
  });
  return moved.map((operation) => endedEvent(operation, now));
}

/**
 * Schedules the next poll while something is undetermined: when the last executed operation must
 * show, at once after a first suspicion, and where it buys most while an outcome is open or the
 * balance keeps changing.
 */
function pollAgain(
  { polls, pollBy, settings }: Deps,
  input: { before: Wallet | undefined; wallet: Wallet; expected: Expected; now: Instant },
): void {
  const { before, wallet, expected, now } = input;
  const { executedUntil, openSince, waiting } = expected;
  const poll = { polledAt: wallet.observedAt ?? now, now };
  const soon = now + settings.pendingMinMs;
  const times: Instant[] = [];
  if (executedUntil !== null) times.push(Math.max(soon, executedUntil + settings.readLagMs + 1));
  if (openSince !== null) times.push(polls.nextAt({ kind: 'balance', since: openSince }, poll));
  if (waiting > 0) times.push(soon);
  if (wallet.suspectedAt !== null) {
    const since = before?.suspectedAt == null ? now : (wallet.consistentAt ?? now);
    times.push(polls.nextAt({ kind: 'confirmation', since }, poll));
  }
  if (times.length > 0) pollBy(`wallet:${wallet.key}`, Math.min(...times));
}
