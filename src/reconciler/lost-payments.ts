/**
 * Lost answers of token writes, solved jointly over all wallets that they connect. It reads the newest
 * looks and the books in one snapshot, and decides nothing while anything else is in flight there.
 */
import type { Tx } from '../db/connect.ts';
import type { Operation } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import { accountOfWallet, effectOn, walletKeysOf } from '../ledger/ledger.ts';
import { hurry, listLooks, pendingGapMs } from '../observer/observer.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Context } from './reconciler.ts';
import { giveToPeople, isQuiet, type Said, takeEvidence } from './resolution.ts';
import {
  COINCIDENCE_MAX,
  chanceOfCoincidence,
  type Explanation,
  solveJointly,
  type WalletEvidence,
} from './unknown-rule.ts';
import { readStanding } from './wallet-books.ts';
import { expectationOf } from './wallet-rule.ts';
import { countDrifts, findWallet } from './wallet-store.ts';

/** Unknown writes that share wallets, directly or through others. */
export interface Component {
  operations: Operation[];
  keys: string[];
}

/** Groups unknown writes by the wallets that they touch; each wallet is in one group only. Pure. */
export function componentsOf(operations: readonly Operation[], context: Context): Component[] {
  const groups: Component[] = [];
  for (const operation of operations) {
    const keys = walletKeysOf(operation, context.books);
    const joined = groups.filter((group) => group.keys.some((key) => keys.includes(key)));
    const merged: Component = {
      operations: [...joined.flatMap((group) => group.operations), operation],
      keys: [...new Set([...joined.flatMap((group) => group.keys), ...keys])],
    };
    for (const group of joined) groups.splice(groups.indexOf(group), 1);
    groups.push(merged);
  }
  return groups;
}

/** Judges one component in the given snapshot. Answers the events of what was settled. */
export async function judgeComponent(
  tx: Tx,
  context: Context,
  component: Component,
  now: Instant,
): Promise<EventDraft[]> {
  const { operations, keys } = component;
  const wallets: WalletEvidence[] = [];
  for (const key of keys) {
    const evidence = await evidenceOf(tx, context, key, operations);
    if (evidence) wallets.push(evidence);
  }
  for (const key of keys) await lookSoon(tx, context, key, operations, now);
  if (wallets.length < keys.length || keys.length === 0)
    return overdue(tx, context, operations, now, 'no clean look');
  const solved = solveJointly(operations.length, wallets);
  if (typeof solved === 'string') return overdue(tx, context, operations, now, solved);
  const events: EventDraft[] = [];
  for (const [i, operation] of operations.entries()) {
    const said = await saidOf(tx, context, { operation, index: i, solved, wallets, now });
    if (said) events.push(...(await takeEvidence(tx, context, operation, said, now)));
  }
  return events;
}

/** One wallet of the component at its newest look, or undefined while it cannot speak. */
async function evidenceOf(
  tx: Tx,
  { books, settings }: Context,
  key: string,
  operations: readonly Operation[],
): Promise<WalletEvidence | undefined> {
  const wallet = await findWallet(tx, key);
  if (!wallet?.opened_at || wallet.observed_balance === null || !wallet.look_id) return undefined;
  const [look] = (await listLooks(tx, `wallet:${key}`, 8)).filter((l) => l.id === wallet.look_id);
  if (!look || operations.some((o) => look.started_at <= (o.sendDeadlineAt ?? o.recordedAt)))
    return undefined;
  const sight = {
    balance: wallet.observed_balance,
    startedAt: look.started_at,
    endedAt: look.ended_at,
  };
  const { standing } = await readStanding(
    tx,
    wallet.addr,
    books,
    sight.startedAt - settings.readLagMs,
  );
  const { base, optional } = expectationOf(sight, standing, settings.readLagMs);
  const ids = new Set(operations.map((o) => o.id));
  if (optional.some((part) => !ids.has(part.operation.id))) return undefined;
  const account = accountOfWallet(wallet.addr);
  return {
    key,
    residual: wallet.observed_balance - base,
    effects: operations.map((operation) => effectOn(operation, account, books)),
    lookId: look.id,
    startedAt: look.started_at,
    endedAt: look.ended_at,
  };
}

/** A wallet with unknown writes is looked at again, at a gap that grows with their age. */
async function lookSoon(
  tx: Tx,
  { settings }: Context,
  key: string,
  operations: readonly Operation[],
  now: Instant,
): Promise<void> {
  const since = Math.max(...operations.map((o) => o.sendDeadlineAt ?? o.recordedAt));
  await hurry(tx, `wallet:${key}`, Math.max(now, since) + pendingGapMs(settings, since, now));
}

async function saidOf(
  tx: Tx,
  { settings }: Context,
  given: {
    operation: Operation;
    index: number;
    solved: Explanation;
    wallets: readonly WalletEvidence[];
    now: Instant;
  },
): Promise<Said | undefined> {
  const { operation, index, solved, wallets, now } = given;
  const outcome = solved.executed[index] ? 'executed' : 'not_executed';
  const quiet = isQuiet(operation, solved.startedAt, settings.quiescenceMs);
  // An explanation that needs something not to have happened waits until it could have.
  if (solved.executed.includes(false) && !quiet) return undefined;
  const sides = wallets.filter((wallet) => wallet.effects[index] !== 0n);
  const chance = await coincidence(tx, sides, operation, now);
  const twoSided = sides.length >= 2;
  return {
    outcome,
    basis: twoSided ? 'two_sided' : 'one_sided',
    enough: twoSided || chance < COINCIDENCE_MAX,
    evidence: {
      looks: solved.lookIds,
      wallets: sides.map((side) => side.key),
      residuals: sides.map((side) => side.residual.toString()),
      ...(twoSided ? {} : { chance_of_coincidence: chance }),
    },
    startedAt: solved.startedAt,
    endedAt: solved.endedAt,
  };
}

/** The chance that an equal outside change explains the one wallet that we can see. */
async function coincidence(
  tx: Tx,
  sides: readonly WalletEvidence[],
  operation: Operation,
  now: Instant,
): Promise<number> {
  let chance = 1;
  for (const { key } of sides) {
    const wallet = await findWallet(tx, key);
    const changes = await countDrifts(tx, key);
    const observedMs = now - (wallet?.opened_at ?? now);
    const windowMs = now - (operation.sentAt ?? operation.recordedAt);
    chance = Math.min(chance, chanceOfCoincidence(changes, observedMs, windowMs));
  }
  return chance;
}

/** Without one explanation an unknown write waits; after the time set for it, people are asked. */
async function overdue(
  tx: Tx,
  context: Context,
  operations: readonly Operation[],
  now: Instant,
  why: string,
): Promise<EventDraft[]> {
  const events: EventDraft[] = [];
  for (const operation of operations) {
    const deadline = operation.sendDeadlineAt ?? operation.recordedAt;
    if (now < deadline + context.settings.quiescenceMs + context.settings.undecidedAfterMs)
      continue;
    events.push(...(await giveToPeople(tx, context, operation, { explanations: why }, now)));
  }
  return events;
}
