/**
 * What observations mean. One elected daemon processes observations in the order in which they
 * started, in one transaction each: the accepted state, drifts, posting requests, transitions of
 * operations and their events are one commit.
 */
import type { Db, Tx } from '../db/connect.ts';
import { acquireLease, type Daemon, lockLease } from '../db/leases.ts';
import { isAway } from '../db/sqlstate.ts';
import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import {
  addWallets,
  availableSince,
  listUnprocessed,
  markProcessed,
  type StoredObservation,
} from '../observer/observer.ts';
import { ownWalletsOf } from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Deps, ReconcilerSettings } from './deps.ts';
import { countResolutions } from './store.ts';
import { evaluateToken } from './tokens/tokens.ts';
import { evaluateScan } from './unknown/mints.ts';
import { type Estimates, estimatesFrom } from './unknown/probability.ts';
import { makeUnknownWork } from './unknown/work.ts';
import { evaluateWallet } from './wallets/wallets.ts';

export type { ReconcilerSettings } from './deps.ts';
export { findToken, listTokens, type Token } from './store.ts';
export { countOpenDrifts, type Position, positionsOf } from './wallets/position-store.ts';
export {
  type Drift,
  findDrift,
  findWallet,
  listDriftActions,
  listDrifts,
  listOpenDrifts,
  listWallets,
  type Wallet,
} from './wallets/store.ts';

export interface Reconciler {
  /**
   * One bounded pass. Answers how many observations it processed, which is 0 while another daemon
   * is the leader, and whether more are waiting.
   */
  runOnce(now: Instant): Promise<{ processed: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const OBSERVATIONS_MAX = 50;
const ESTIMATE_EVERY_MS = 600_000;
const BREAK_MS = 120_000;

type Conditions = Pick<Deps, 'availableSince' | 'processingSince' | 'estimates'>;

/** Tracks what all evaluations of a pass share. */
function trackConditions(db: Db, settings: ReconcilerSettings) {
  let processedAt = Number.NEGATIVE_INFINITY;
  let processingSince: Instant = 0;
  let estimated: { estimates: Estimates; at: Instant } | undefined;
  return async (now: Instant): Promise<Conditions> => {
    // After a break, as after a start, deadlines for evidence begin anew.
    if (now - processedAt > BREAK_MS) processingSince = now;
    processedAt = now;
    if (!estimated || now >= estimated.at + ESTIMATE_EVERY_MS || now < estimated.at) {
      const hiddenMs = settings.quiescenceMs + settings.readLagMs;
      estimated = { estimates: estimatesFrom(await countResolutions(db), hiddenMs), at: now };
    }
    const { estimates } = estimated;
    return { availableSince: await availableSince(db), processingSince, estimates };
  };
}

/** Runs one evaluation in one snapshot, fenced, and commits its events with it. */
function fencedCommits(db: Db, outbox: Outbox) {
  return (fence: bigint, work: (tx: Tx) => Promise<EventDraft[]>): Promise<void> =>
    db.begin(
      async (tx) => {
        await lockLease(tx, LEASE, fence);
        await outbox.emit(tx, await work(tx));
      },
      { snapshot: true },
    );
}

/** The reconciler of one daemon. */
export function makeReconciler(
  deps: Omit<Deps, keyof Conditions> & { db: Db; daemon: Daemon; outbox: Outbox },
): Reconciler {
  const { db, daemon, outbox, ids, operations, effectSettings, settings } = deps;
  const unknownWork = makeUnknownWork(db);
  const conditionsAt = trackConditions(db, settings);
  let booksObserved = false;

  const commit = fencedCommits(db, outbox);

  const evaluateObservation = (
    fence: bigint,
    evaluation: Deps,
    observation: StoredObservation,
    now: Instant,
  ) =>
    commit(fence, async (tx) => {
      if (!(await markProcessed(tx, observation, now)) || observation.result === 'inconclusive')
        return [];
      return evaluatorOf(observation)(tx, evaluation, observation, now);
    });

  /** Wallets of the ledger's own accounts are observed without a watch. */
  async function observeBooks(now: Instant): Promise<void> {
    if (booksObserved) return;
    await addWallets(db, ownWalletsOf(effectSettings), now);
    booksObserved = true;
  }

  async function pass(fence: bigint, now: Instant) {
    await observeBooks(now);
    const evaluation = { ids, operations, effectSettings, settings, ...(await conditionsAt(now)) };
    const observations = await listUnprocessed(db, OBSERVATIONS_MAX);
    // A failed evaluation does not delay the others; the pass fails after all of them.
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void>) => {
      await work.catch((error: unknown) => {
        if (isAway(error) || isLeaseLost(error)) throw error;
        failures.push(error);
      });
    };
    for (const observation of observations)
      await attempt(evaluateObservation(fence, evaluation, observation, now));
    const seen = new Set(observations.map(({ target }) => target.replace(/^wallet:/, '')));
    for (const work of await unknownWork.next(evaluation, seen, now))
      await attempt(commit(fence, work));
    if (failures.length > 0) throw failures[0];
    return { processed: observations.length, more: observations.length === OBSERVATIONS_MAX };
  }

  return {
    async runOnce(now) {
      const fence = await acquireLease(db, LEASE, daemon, now, LEASE_MS);
      if (fence === undefined) return { processed: 0, more: false };
      try {
        return await pass(fence, now);
      } catch (error) {
        if (isLeaseLost(error)) return { processed: 0, more: false };
        throw error;
      }
    },
  };
}

function evaluatorOf({ kind, result }: StoredObservation): typeof evaluateWallet {
  if (kind === 'token') return evaluateToken;
  if (kind === 'scan') return evaluateScan;
  return result === 'seen' ? evaluateWallet : async () => [];
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}
