/**
 * What observations mean. One elected daemon processes them, in one transaction each: the accepted
 * state, drifts, posting requests, transitions of operations and their events are one commit.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Daemon, lockLease, makeLease } from '../db/leases.ts';
import { DatabaseError, isAway, isTooSlow } from '../db/sqlstate.ts';
import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Random } from '../kernel/random.ts';
import { backoffMs } from '../kernel/retry.ts';
import {
  addWallets,
  availableSince,
  deferObservation,
  listUnprocessed,
  markProcessed,
  type Observer,
  type UnprocessedObservation,
} from '../observer/observer.ts';
import { findLastRestore, ownWalletsOf } from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Deps } from './deps.ts';
import { evaluateToken } from './tokens/tokens.ts';
import { evaluateScan } from './unknown/mints.ts';
import { makeUnknownWork } from './unknown/work.ts';
import { evaluateWallet } from './wallets/wallets.ts';

export { type AlertSettings, type Alerts, makeAlerts } from './alerts/alerts.ts';
export type { Alert } from './alerts/rule.ts';
export type { AlertRule } from './alerts/rule-checks.ts';
export { type AlertCount, countAlerts, listAlerts } from './alerts/store.ts';
export { LATE, STUCK } from './alerts/watchdog.ts';
export type { ReconcilerSettings } from './deps.ts';
export { CAUSES, type Cause } from './drifts/cause.ts';
export { feeRuleAnnouncement } from './drifts/fee-rule.ts';
export {
  type DriftResult,
  type Drifts,
  makeDrifts,
  type ProposalInput,
} from './drifts/service.ts';
export { DRIFT_STATES, PROPOSALS } from './drifts/states.ts';
export { type Drift, findDrift, listDriftActions, listDrifts } from './drifts/store.ts';
export {
  countEnded,
  countOpenDrifts,
  type DriftSums,
  summarizeDrifts,
} from './drifts/summary-store.ts';
export { releaseQuarantined } from './quarantine/quarantine.ts';
export {
  countQuarantined,
  listQuarantined,
  listReleases,
  QUARANTINE_KINDS,
  type QuarantineCursor,
  type Quarantined,
  type QuarantineKind,
  type Release,
} from './quarantine/store.ts';
export {
  dropResolvedCandidates,
  findToken,
  listContracts,
  listTokens,
  type Token,
} from './store.ts';
export {
  countStaleWallets,
  type Position,
  positionsOf,
} from './wallets/position-store.ts';
export { findWallet, listWallets, type Wallet, walletsByKey } from './wallets/store.ts';

export interface Reconciler {
  /**
   * One bounded pass. Returns how many observations it processed, which is 0 while another daemon
   * is the leader, and whether more are due. When the signal aborts, it ends after the evaluation
   * that is running.
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<{ processed: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const OBSERVATIONS_MAX = 100;
/** The deadline of one evaluation; a slow one must not delay the others for long. */
const EVALUATION_MS = 5_000;
/** After so many failures an observation is quarantined. */
const FAILURES_MAX = 5;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 60_000;

/** The reconciler of one daemon. */
interface ReconcilerDeps extends Omit<Deps, 'availableSince' | 'restoredAt' | 'polls'> {
  pendingPolls: Observer['pendingPolls'];
  db: Db;
  daemon: Daemon;
  outbox: Outbox;
  random: Random;
  log: Log;
}

export function makeReconciler(deps: ReconcilerDeps): Reconciler {
  const { db, outbox, ids, operations, effectSettings, settings, pendingPolls } = deps;
  const acquire = makeLease(db, { ...deps, name: LEASE, ttlMs: LEASE_MS });
  const unknownWork = makeUnknownWork(db);
  let ownWalletsObserved = false;

  /** Runs one evaluation, fenced, and commits its events with it; a failure delays no other. */
  async function attempt(
    fence: bigint,
    evaluate: (tx: Tx) => Promise<EventDraft[]>,
    onFailure: (error: unknown) => unknown,
  ): Promise<void> {
    const work = async (tx: Tx) => {
      await lockLease(tx, LEASE, fence);
      await outbox.emit(tx, await evaluate(tx));
    };
    try {
      await db.begin(work, { snapshot: true, deadlineMs: EVALUATION_MS });
    } catch (error) {
      if (endsPass(error)) throw error;
      await onFailure(error);
    }
  }

  async function pass(fence: bigint, now: Instant, signal: AbortSignal | undefined) {
    // Wallets of the ledger's own accounts are observed without a watch.
    if (!ownWalletsObserved) await addWallets(db, ownWalletsOf(effectSettings), now);
    ownWalletsObserved = true;
    const polls = await pendingPolls();
    const [available, restoredAt] = await Promise.all([availableSince(db), findLastRestore(db)]);
    const evaluation = {
      ...{ ids, operations, effectSettings, settings },
      ...{ availableSince: available, restoredAt, polls },
    };
    const observations = await listUnprocessed(db, now, OBSERVATIONS_MAX);
    for (const [processed, observation] of observations.entries()) {
      if (signal?.aborted) return { processed, more: true };
      const evaluate = async (tx: Tx) =>
        (await markProcessed(tx, observation))
          ? evaluatorOf(observation)(tx, evaluation, observation, now)
          : [];
      await attempt(fence, evaluate, (error) => defer(deps, observation, error, now));
    }
    const seen = walletsOf(observations);
    const failures: unknown[] = [];
    for (const evaluate of await unknownWork.next(evaluation, seen, now)) {
      if (signal?.aborted) break;
      await attempt(fence, evaluate, (error) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
    const processed = observations.length;
    return { processed, more: processed === OBSERVATIONS_MAX };
  }

  return {
    async runOnce(now, signal) {
      const fence = await acquire(now);
      if (fence === undefined) return { processed: 0, more: false };
      try {
        return await pass(fence, now, signal);
      } catch (error) {
        if (isLeaseLost(error)) return { processed: 0, more: false };
        throw error;
      }
    },
  };
}

/**
 * An observation that failed is tried again later, and quarantined after five failures unless the
 * last one was a timeout. It delays no other.
 */
async function defer(
  { db, random, log }: { db: Db; random: Random; log: Log },
  observation: UnprocessedObservation,
  error: unknown,
  now: Instant,
): Promise<void> {
  const { target, failures } = observation;
  const message = error instanceof Error ? error.message : String(error);
  const problem = failures + 1 >= FAILURES_MAX && !isSlow(error) ? message : null;
  const processAt = problem ? now : now + backoffMs(failures, RETRY_MS, RETRY_MAX_MS, random);
  await db.single((q) => deferObservation(q, observation, { processAt, problem }));
  const event = problem ? 'an observation was quarantined' : 'an observation was not processed';
  log.error({ err: error, target, failures: failures + 1 }, event);
}

/** The wallets among these targets, lower case. */
function walletsOf(observations: readonly UnprocessedObservation[]): Set<string> {
  const wallets = observations.filter(({ kind }) => kind === 'wallet');
  return new Set(wallets.map(({ target }) => target.slice('wallet:'.length)));
}

function evaluatorOf({ kind, result }: UnprocessedObservation): typeof evaluateWallet {
  if (kind === 'token') return evaluateToken;
  if (kind === 'scan') return evaluateScan;
  return result === 'seen' ? evaluateWallet : async () => [];
}

/** Without the database or the lease every evaluation fails; a timeout concerns only one. */
function endsPass(error: unknown): boolean {
  return isLeaseLost(error) || (isAway(error) && !isSlow(error));
}

function isSlow(error: unknown): boolean {
  return isTooSlow(error) || (error instanceof DatabaseError && error.code === 'DEADLINE');
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}
