/**
 * Resolves unknown token writes, jointly over all wallets that they connect, from the newest
 * observations and the ledger in one snapshot. Other possible operations take part in the solution.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { expedite, listObservations, pendingIntervalMs } from '../../observer/observer.ts';
import { type Operation, walletKeysOf } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import {
  applyFinding,
  executedProbability,
  type Finding,
  isOverdue,
  isQuiescent,
  markUndecided,
} from '../resolution.ts';
import { findCandidate } from '../store.ts';
import { readBaseline } from '../wallets/expected.ts';
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

/** Unknown token writes that share wallets, directly or through others. */
export interface Component {
  operations: Operation[];
  keys: string[];
}

/** Groups unknown token writes so that each wallet is in one component. Pure. */
export function componentsOf(operations: readonly Operation[], deps: Deps): Component[] {
  const groups: Component[] = [];
  for (const operation of operations) {
    const keys = walletKeysOf(operation, deps.effectSettings);
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

/** Evaluates one component. Answers the events to emit. */
export async function evaluateComponent(
  tx: Tx,
  deps: Deps,
  { operations, keys }: Component,
  now: Instant,
): Promise<EventDraft[]> {
  const wallets: WalletEvidence[] = [];
  for (const key of keys) {
    await pollSoon(tx, deps, key, operations, now);
    const evidence = await evidenceOf(tx, deps, key);
    // Unexplained wallets are left out, so that they cannot block the others.
    if (evidence && canBeExplained(evidence)) wallets.push(evidence);
  }
  const solved = wallets.length > 0 ? solveJointly(wallets) : 'no wallet can be explained';
  const events: EventDraft[] = [];
  for (const operation of operations) {
    const explained = wallets.filter(({ key }) => isPartyOf(operation, key, deps));
    const finding =
      explained.length === 0
        ? await findingFromStep(tx, deps, operation, now)
        : typeof solved !== 'string' &&
          (await findingOf(tx, deps, { operation, solved, explained, now }));
    const why = typeof solved === 'string' ? solved : 'the observations are inconclusive';
    events.push(
      ...(finding
        ? await applyFinding(tx, deps, operation, finding, now)
        : await undecidedIfOverdue(tx, deps, operation, now, why)),
    );
  }
  return events;
}

function isPartyOf(operation: Operation, key: string, { effectSettings }: Deps): boolean {
  return walletKeysOf(operation, effectSettings).includes(key);
}

/**
 * The finding when none of its wallets can be explained because they were also changed elsewhere:
 * executed, if one of them changed once by exactly its effect.
 */
async function findingFromStep(
  tx: Tx,
  deps: Deps,
  operation: Operation,
  now: Instant,
): Promise<Finding | undefined> {
  for (const key of walletKeysOf(operation, deps.effectSettings)) {
    const step = await stepShown(tx, deps, key, { operation, now });
    const newest = step?.observations.at(-1);
    if (!step || !newest || step.chance >= COINCIDENCE_MAX) continue;
    const evidence = {
      observations: step.observations.map(({ observationId }) => observationId),
      wallets: [key],
      residuals: step.observations.map(({ residual }) => residual.toString()),
      moved_once: true,
      chance_of_coincidence: step.chance,
    };
    const finding = { outcome: 'executed', basis: 'one_sided', sufficient: true } as const;
    return { ...finding, evidence, startedAt: newest.startedAt, endedAt: newest.endedAt };
  }
  return undefined;
}

/** The evidence of one wallet; undefined without an opening or a complete observation. */
async function evidenceOf(tx: Tx, deps: Deps, key: string): Promise<WalletEvidence | undefined> {
  const { readLagMs } = deps.settings;
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
  const { baseline } = await readBaseline(tx, wallet.addr, deps.effectSettings, { since });
  const observed = { balance, startedAt, endedAt };
  const { base, possible, complete } = expectationOf(observed, baseline, readLagMs);
  if (!complete) return undefined;
  return {
    key,
    residual: balance - base,
    possible: possible.map(({ operation, effect }) => ({
      id: operation.id,
      effect,
      quiescent: operation.outcome === 'open' && isQuiescent(operation, startedAt, deps),
    })),
    observationId: observation.id,
    startedAt,
    endedAt,
  };
}

/** Schedules a poll of a wallet with unknown writes at a gap that grows with their age. */
async function pollSoon(
  tx: Tx,
  { settings }: Deps,
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

/** What all explanations agree on for one operation; undefined while they do not. */
async function findingOf(
  tx: Tx,
  deps: Deps,
  input: {
    operation: Operation;
    solved: Explanation;
    /** The wallets of the operation that can be explained. */
    explained: readonly WalletEvidence[];
    now: Instant;
  },
): Promise<Finding | undefined> {
  const { operation, solved, explained, now } = input;
  const shown = solved.shown.get(operation.id);
  const parties = new Set(walletKeysOf(operation, deps.effectSettings));
  const sides = explained.filter(({ possible }) => possible.some(({ id }) => id === operation.id));
  // One of these observations is from before the send.
  if (sides.length < explained.length) return undefined;
  if (shown === undefined || shown === 'open') return undefined;
  if (shown === 'none' && !isQuiescent(operation, solved.startedAt, deps)) return undefined;
  const outcome = shown === 'all' ? 'executed' : 'not_executed';
  const probability = executedProbability(deps, operation, solved.startedAt);
  const twoSided = sides.length >= 2;
  if (!twoSided && outcome === 'not_executed' && !isUnlikely(probability)) return undefined;
  const earlier = await findCandidate(tx, operation.id);
  const first = earlier?.outcome === outcome ? earlier.seenAt : solved.endedAt;
  const chance = twoSided
    ? 0
    : await coincidence(tx, deps, sides, { operation, outcome, first, now });
  // Weak evidence waits while another wallet of the operation may still be explained.
  if (chance >= COINCIDENCE_MAX && explained.length < parties.size) return undefined;
  return {
    outcome,
    basis: twoSided ? 'two_sided' : 'one_sided',
    sufficient: twoSided || chance < COINCIDENCE_MAX,
    evidence: {
      observations: solved.observationIds,
      wallets: sides.map((side) => side.key),
      residuals: sides.map((side) => side.residual.toString()),
      ...(twoSided ? {} : { chance_of_coincidence: chance }),
      ...(outcome === 'not_executed' ? { probability_executed: probability } : {}),
    },
    startedAt: solved.startedAt,
    endedAt: solved.endedAt,
  };
}

async function undecidedIfOverdue(
  tx: Tx,
  deps: Deps,
  operation: Operation,
  now: Instant,
  why: string,
): Promise<EventDraft[]> {
  if (!isOverdue(operation, deps, now)) return [];
  return markUndecided(tx, deps, operation, { explanations: why }, now);
}
