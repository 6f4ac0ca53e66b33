/**
 * Lost answers of token writes, solved jointly over all wallets that they connect. It reads the
 * newest looks and the books in one snapshot; whatever else is open or under way there takes part
 * in the solution, and nothing is said of it.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { expedite, listObservations, pendingIntervalMs } from '../../observer/observer.ts';
import { type Operation, walletKeysOf } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import {
  beliefIn,
  giveToPeople,
  isOverdue,
  isQuiescent,
  type Said,
  takeEvidence,
} from '../resolution.ts';
import { findCandidate } from '../store.ts';
import { readStanding } from '../wallets/expected.ts';
import { expectationOf } from '../wallets/rule.ts';
import { findWallet } from '../wallets/store.ts';
import { coincidence, stepShown } from './coincidence.ts';
import { isUnlikely } from './probability.ts';
import {
  COINCIDENCE_MAX,
  canBeExplained,
  type Explanation,
  solveJointly,
  type WalletEvidence,
} from './rule.ts';

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
  { operations, keys }: Component,
  now: Instant,
): Promise<EventDraft[]> {
  const wallets: WalletEvidence[] = [];
  for (const key of keys) {
    await pollSoon(tx, context, key, operations, now);
    const evidence = await evidenceOf(tx, context, key);
    // One that nothing explains was changed by others: it says nothing, and silences no neighbour.
    if (evidence && canBeExplained(evidence)) wallets.push(evidence);
  }
  const solved = wallets.length > 0 ? solveJointly(wallets) : 'no wallet can be explained';
  const events: EventDraft[] = [];
  for (const operation of operations) {
    const explained = wallets.filter(({ key }) => isPartyOf(operation, key, context));
    const said =
      explained.length === 0
        ? await saidByStep(tx, context, operation, now)
        : typeof solved !== 'string' &&
          (await saidOf(tx, context, { operation, solved, speaking: explained, now }));
    const why = typeof solved === 'string' ? solved : 'the looks do not tell';
    events.push(
      ...(said
        ? await takeEvidence(tx, context, operation, said, now)
        : await overdue(tx, context, operation, now, why)),
    );
  }
  return events;
}

function isPartyOf(operation: Operation, key: string, { books }: Context): boolean {
  return walletKeysOf(operation, books).includes(key);
}

/**
 * None of its wallets can be explained: others changed them. One that moved by just its effect
 * between two looks says that it was executed all the same; that it was not, none of them can say.
 */
async function saidByStep(
  tx: Tx,
  context: Context,
  operation: Operation,
  now: Instant,
): Promise<Said | undefined> {
  for (const key of walletKeysOf(operation, context.books)) {
    const step = await stepShown(tx, context, key, { operation, now });
    const newest = step?.observations.at(-1);
    if (!step || !newest || step.chance >= COINCIDENCE_MAX) continue;
    const evidence = {
      observations: step.observations.map(({ observationId }) => observationId),
      wallets: [key],
      residuals: step.observations.map(({ residual }) => residual.toString()),
      moved_once: true,
      chance_of_coincidence: step.chance,
    };
    const said = { outcome: 'executed', basis: 'one_sided', enough: true } as const;
    return { ...said, evidence, startedAt: newest.startedAt, endedAt: newest.endedAt };
  }
  return undefined;
}

/** One wallet of the component at its newest look, or undefined while it cannot speak. */
async function evidenceOf(
  tx: Tx,
  context: Context,
  key: string,
): Promise<WalletEvidence | undefined> {
  const { readLagMs } = context.settings;
  const wallet = await findWallet(tx, key);
  if (!wallet?.openedAt || wallet.observedBalance === null || !wallet.observationId)
    return undefined;
  const [observation] = (await listObservations(tx, `wallet:${key}`, 8)).filter(
    (l) => l.id === wallet.observationId,
  );
  if (!observation) return undefined;
  const balance = wallet.observedBalance;
  const { startedAt, endedAt } = observation;
  const since = startedAt - readLagMs;
  const { standing } = await readStanding(tx, wallet.addr, context.books, { since });
  const sight = { balance, startedAt, endedAt };
  const { base, optional, complete } = expectationOf(sight, standing, readLagMs);
  if (!complete) return undefined;
  return {
    key,
    residual: balance - base,
    optional: optional.map(({ operation, effect }) => ({
      id: operation.id,
      effect,
      settled: operation.outcome === 'open' && isQuiescent(operation, startedAt, context),
    })),
    observationId: observation.id,
    startedAt,
    endedAt,
  };
}

/** A wallet with unknown writes is looked at again, at a gap that grows with their age. */
async function pollSoon(
  tx: Tx,
  { settings }: Context,
  key: string,
  operations: readonly Operation[],
  now: Instant,
): Promise<void> {
  const since = Math.max(...operations.map((o) => o.sendDeadlineAt ?? o.recordedAt));
  await expedite(
    tx,
    `wallet:${key}`,
    Math.max(now, since) + pendingIntervalMs(settings, since, now),
  );
}

/** What all explanations say of one operation, or undefined while they do not agree. */
async function saidOf(
  tx: Tx,
  context: Context,
  given: {
    operation: Operation;
    solved: Explanation;
    /** The wallets of the operation that can be explained. */
    speaking: readonly WalletEvidence[];
    now: Instant;
  },
): Promise<Said | undefined> {
  const { operation, solved, speaking, now } = given;
  const shown = solved.shown.get(operation.id);
  const parties = new Set(walletKeysOf(operation, context.books));
  const sides = speaking.filter(({ optional }) => optional.some(({ id }) => id === operation.id));
  // A look from before the write says nothing of it: the next one will.
  if (sides.length < speaking.length) return undefined;
  if (shown === undefined || shown === 'open') return undefined;
  // What is not shown may still come, until it has become quiet.
  if (shown === 'none' && !isQuiescent(operation, solved.startedAt, context)) return undefined;
  const outcome = shown === 'all' ? 'executed' : 'not_executed';
  const belief = beliefIn(context, operation, solved.startedAt);
  const twoSided = sides.length >= 2;
  // One wallet that does not show it says so with more weight the longer it lasts.
  if (!twoSided && outcome === 'not_executed' && !isUnlikely(belief)) return undefined;
  const earlier = await findCandidate(tx, operation.id);
  const first = earlier?.outcome === outcome ? earlier.seenAt : solved.endedAt;
  const chance = twoSided
    ? 0
    : await coincidence(tx, context, sides, { operation, outcome, first, now });
  // While another party may still be explained, weak evidence waits for it.
  if (chance >= COINCIDENCE_MAX && speaking.length < parties.size) return undefined;
  return {
    outcome,
    basis: twoSided ? 'two_sided' : 'one_sided',
    enough: twoSided || chance < COINCIDENCE_MAX,
    evidence: {
      observations: solved.observationIds,
      wallets: sides.map((side) => side.key),
      residuals: sides.map((side) => side.residual.toString()),
      ...(twoSided ? {} : { chance_of_coincidence: chance }),
      ...(outcome === 'not_executed' ? { belief_executed: belief } : {}),
    },
    startedAt: solved.startedAt,
    endedAt: solved.endedAt,
  };
}

/** Without one explanation an unknown write waits; after the time set for it, people are asked. */
async function overdue(
  tx: Tx,
  context: Context,
  operation: Operation,
  now: Instant,
  why: string,
): Promise<EventDraft[]> {
  if (!isOverdue(operation, context, now)) return [];
  return giveToPeople(tx, context, operation, { explanations: why }, now);
}
