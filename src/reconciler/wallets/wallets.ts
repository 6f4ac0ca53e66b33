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
import { quiescenceEnd, waitFor } from '../resolution.ts';
import { totalOf } from './drift-rule.ts';
import { stepDrifts } from './drifts.ts';
import { type Expected, expectedBalances, listConfirmed, listExecutedBetween } from './expected.ts';
import { takeLateChanges } from './late-changes.ts';
import { openWallet } from './opening.ts';
import { type Comparison, compareBalance, walletRecordOf } from './rule.ts';
import { type Doubts, type HeldBy, heldBy, type Unsettled } from './settling-rule.ts';
import { stepSeen } from './vanished.ts';
import { findWallet, saveWallet, stateOf, type Wallet } from './wallet.ts';

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
  wallet.ledgerVersion = expected.version;
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
    ledgerVersion: null,
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

/** @param operations ids of those that explain the change */
function observedEvents(
  before: Wallet | undefined,
  now: Wallet,
  comparison: Comparison,
  { operations, at }: { operations: string[]; at: Instant },
): EventDraft[] {
  const common = { subject: `wallet:${now.key}`, occurredAt: at };
  const current = stateOf(now);
  if (!before || before.observedBalance === null) {
    return [{ ...common, type: 'wallet.observed', data: { addr: now.addr, current } }];
  }
  const previous = stateOf(before);
  const events: EventDraft[] = [];
  if (previous.balance !== current.balance) {
    // Without an opening there is no expected balance.
    const explanation = before.openedAt === null ? 'undetermined' : explanationOf(comparison);
    const data = { addr: now.addr, previous, current, explanation, operations } as const;
    events.push({ ...common, type: 'wallet.balance_changed', data });
  }
  if (previous.status !== current.status) {
    const data = { addr: now.addr, previous, current };
    events.push({ ...common, type: 'wallet.status_changed', data });
  }
  return events;
}

function explanationOf(comparison: Comparison): 'explained' | 'undetermined' | 'unexplained' {
  if (comparison.result === 'unexplained') return 'unexplained';
  return comparison.unique ? 'explained' : 'undetermined';
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
 * What holds each of these operations, by id; those that nothing holds are absent. A balance does
 * not confirm them although it is explained: on each of their wallets a drift, an unknown operation
 * or both could hold the same difference. They wait, and say so.
 */
async function findHeld(
  tx: Tx,
  deps: Deps,
  key: string,
  ids: readonly string[],
): Promise<Map<string, HeldBy>> {
  const here = (await doubtsOn(tx, deps, [key])).get(key);
  const held = here ? heldOn(here, new Set(ids)) : new Map<string, HeldBy>();
  if (held.size === 0) return held;
  const walletsOf = await listWalletsOf(tx, [...held.keys()]);
  const others = [...new Set([...walletsOf.values()].flat())].filter((other) => other !== key);
  const doubts = await doubtsOn(tx, deps, others);
  for (const other of others) {
    const on = new Set([...held.keys()].filter((id) => walletsOf.get(id)?.includes(other)));
    const there = heldOn(doubts.get(other) ?? NO_DOUBTS, on);
    for (const id of on) {
      const [a, b] = [held.get(id), there.get(id)];
      // A wallet that shows it without a doubt is enough.
      if (!a || !b) held.delete(id);
      else
        held.set(id, {
          drifts: union(a.drifts, b.drifts),
          operations: union(a.operations, b.operations),
        });
    }
  }
  return held;
}

const NO_DOUBTS: Doubts = { drifts: [], unknown: [], unsettled: [] };

function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])].sort();
}

function heldOn(doubts: Doubts, ids: ReadonlySet<string>): Map<string, HeldBy> {
  return new Map(
    doubts.unsettled.flatMap((operation) => {
      const held = ids.has(operation.id) ? heldBy(operation, doubts) : undefined;
      return held ? [[operation.id, held] as const] : [];
    }),
  );
}

async function doubtsOn(tx: Tx, deps: Deps, keys: readonly string[]): Promise<Map<string, Doubts>> {
  if (keys.length === 0) return new Map();
  const [drifts, rows] = await Promise.all([listOpenDrifts(tx, keys), listUnsettledOn(tx, keys)]);
  const byKey = Map.groupBy(rows, ({ key }) => key);
  return new Map(
    keys.map((key) => {
      const here = byKey.get(key) ?? [];
      const isUnknown = (row: UnsettledOn) => row.outcome === 'open';
      return [
        key,
        {
          drifts: drifts.filter(({ walletKey }) => walletKey === key),
          unknown: here.filter(isUnknown).map((row) => ({
            ...row,
            until: quiescenceEnd(row.deadlineAt, deps),
          })),
          unsettled: here.filter((row) => !isUnknown(row)),
        },
      ] as const;
    }),
  );
}

interface UnsettledOn extends Unsettled {
  key: string;
  outcome: 'open' | 'executed';
  deadlineAt: Instant;
}

/** Executed operations on these wallets that are not settled, and unknown and undecided ones. */
async function listUnsettledOn(tx: Tx, keys: readonly string[]): Promise<UnsettledOn[]> {
  return tx.sql<UnsettledOn[]>`
    select e.key, o.id, e.effect, o.outcome,
      coalesce(o.sent_at, o.effective_at, o.recorded_at) as sent_at,
      coalesce(o.effective_at, o.answered_at, o.recorded_at) as took_effect_at,
      coalesce(o.send_deadline_at, o.recorded_at) as deadline_at
    from (
      select substr(lower(account), 8) as key, operation_id, sum(amount) as effect
      from tallyhook.operation_effects
      where lower(account) = any(${keys.map((key) => `wallet:${key}`)}::text[]) and unsettled
        and phase in ('open', 'undecided', 'executed')
      group by 1, 2 having sum(amount) <> 0) e
    join tallyhook.operations o on o.id = e.operation_id
    where o.state in ('unknown', 'undecided', 'accepted', 'executed')`;
}

/** The keys of the wallets that each operation changes. */
async function listWalletsOf(tx: Tx, ids: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await tx.sql<{ id: string; keys: string[] }[]>`
    select e.operation_id as id, array_agg(e.key) as keys
    from (
      select operation_id, substr(lower(account), 8) as key from tallyhook.operation_effects
      where operation_id = any(${ids as string[]}::text[]) and account like 'wallet:%'
      group by 1, 2 having sum(amount) <> 0) e
    group by 1`;
  return new Map(rows.map(({ id, keys }) => [id, keys]));
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
