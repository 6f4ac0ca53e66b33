/**
 * What the difference means. One elected daemon judges looks in the order in which they started,
 * one transaction per look: the accepted state, drifts, wanted postings, endings of operations and
 * their events are one commit. Nothing is concluded from silence.
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
import type { Context, ReconcilerSettings } from './deps.ts';
import { judgeToken } from './tokens/tokens.ts';
import { evaluateScan } from './unknown/mints.ts';
import { type Odds, oddsOf } from './unknown/probability.ts';
import { listLessons } from './unknown/probability-store.ts';
import { makeUnknownWork } from './unknown/work.ts';
import { judgeWallet } from './wallets/wallets.ts';

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
  /** One bounded pass. Answers how many looks were judged; 0 while another daemon is the judge. */
  runOnce(now: Instant): Promise<{ judged: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const LOOKS_MAX = 50;
const LEARN_EVERY_MS = 600_000;
const BREAK_MS = 120_000;

type Circumstances = Pick<Context, 'availableSince' | 'processingSince' | 'odds'>;

/** What surrounds all judgements of a pass: since when they mean something, what was learned. */
function watchCircumstances(db: Db, settings: ReconcilerSettings) {
  let processedAt = Number.NEGATIVE_INFINITY;
  let processingSince: Instant = 0;
  let learned: { odds: Odds; at: Instant } | undefined;
  return async (now: Instant): Promise<Circumstances> => {
    // After a break, as after a start, clocks that wait for looks begin anew.
    if (now - processedAt > BREAK_MS) processingSince = now;
    processedAt = now;
    if (!learned || now >= learned.at + LEARN_EVERY_MS || now < learned.at) {
      const hiddenMs = settings.quiescenceMs + settings.readLagMs;
      learned = { odds: oddsOf(await listLessons(db), hiddenMs), at: now };
    }
    return { availableSince: await availableSince(db), processingSince, odds: learned.odds };
  };
}

/** The reconciler of one daemon. */
export function makeReconciler(
  given: Omit<Context, keyof Circumstances> & {
    db: Db;
    daemon: Daemon;
    outbox: Outbox;
  },
): Reconciler {
  const { db, daemon, outbox } = given;

  /** Runs one judgement in one snapshot, fenced, with its events in the same commit. */
  async function judge(fence: bigint, work: (tx: Tx) => Promise<EventDraft[]>): Promise<void> {
    await db.begin(
      async (tx) => {
        await lockLease(tx, LEASE, fence);
        await outbox.emit(tx, await work(tx));
      },
      { snapshot: true },
    );
  }

  const evaluateObservation = (
    fence: bigint,
    context: Context,
    observation: StoredObservation,
    now: Instant,
  ) =>
    judge(fence, async (tx) => {
      if (!(await markProcessed(tx, observation, now)) || observation.result === 'inconclusive')
        return [];
      return judgementOf(observation)(tx, context, observation, now);
    });

  let booksObserved = false;
  /** Wallets of our own books are looked at even if nobody watches them. */
  async function observeBooks(now: Instant): Promise<void> {
    if (booksObserved) return;
    await addWallets(db, ownWalletsOf(given.books), now);
    booksObserved = true;
  }

  const lost = makeUnknownWork(db);
  const circumstances = watchCircumstances(db, given.settings);

  async function pass(fence: bigint, now: Instant) {
    await observeBooks(now);
    const context = { ...given, ...(await circumstances(now)) };
    const observations = await listUnprocessed(db, LOOKS_MAX);
    // One that cannot be judged does not hold up the others; the pass fails when all are done.
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void>) => {
      await work.catch((error: unknown) => {
        if (isAway(error) || isLeaseLost(error)) throw error;
        failures.push(error);
      });
    };
    for (const observation of observations)
      await attempt(evaluateObservation(fence, context, observation, now));
    const seen = new Set(observations.map(({ target }) => target.replace(/^wallet:/, '')));
    for (const work of await lost.next(context, seen, now)) await attempt(judge(fence, work));
    if (failures.length > 0) throw failures[0];
    return { judged: observations.length, more: observations.length === LOOKS_MAX };
  }

  return {
    async runOnce(now) {
      const fence = await acquireLease(db, LEASE, daemon, now, LEASE_MS);
      if (fence === undefined) return { judged: 0, more: false };
      try {
        return await pass(fence, now);
      } catch (error) {
        if (isLeaseLost(error)) return { judged: 0, more: false };
        throw error;
      }
    },
  };
}

/** Who judges a conclusive look. */
function judgementOf({ kind, result }: StoredObservation): typeof judgeWallet {
  if (kind === 'token') return judgeToken;
  if (kind === 'scan') return evaluateScan;
  return result === 'seen' ? judgeWallet : async () => [];
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}
