/**
 * What observations mean. One elected daemon processes them, each in one transaction: the accepted
 * state, drifts, posting requests, transitions of operations and their events are one commit.
 */
import type { Db, Tx } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import {
  type Daemon,
  isLeaseLost,
  lockedFence,
  makeHeldLease,
  requireFence,
} from '../db/leases.ts';
import { DatabaseError, isOutage, isTooSlow } from '../db/sqlstate.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import { backoffMs } from '../kernel/retry.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import {
  addWallets,
  deferObservation,
  expedite,
  listUnprocessed,
  type Observer,
  processedOf,
  type UnprocessedObservation,
} from '../observer/observer.ts';
import { findLastRestore, ownWalletsOf } from '../operations/operations.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Deps } from './deps.ts';
import { evaluateToken } from './tokens/tokens.ts';
import { evaluateScan } from './unknown/mints.ts';
import { makeUnknownWork } from './unknown/work.ts';
import { evaluateAbsentWallet } from './wallets/vanished.ts';
import { evaluateWallet } from './wallets/wallets.ts';

export {
  type AlertCount,
  type AlertSettings,
  type Alerts,
  countAlerts,
  hasAlerts,
  listAlerts,
  makeAlerts,
} from './alerts/alerts.ts';
export type { AlertRule } from './alerts/rule-checks.ts';
export { LATE, STUCK } from './alerts/watchdog.ts';
export type { ReconcilerSettings } from './deps.ts';
export {
  type DriftResult,
  type Drifts,
  makeDrifts,
  type ProposalInput,
} from './drifts/decisions.ts';
export {
  countEnded,
  countOpenDrifts,
  type Drift,
  findDrift,
  listDriftActions,
  listDrifts,
  type OpenDrifts,
  summarizeDrifts,
} from './drifts/drift.ts';
export { feeRuleAnnouncement } from './drifts/fee-rule.ts';
export {
  countQuarantined,
  listQuarantined,
  listReleases,
  type QuarantineCursor,
  releaseQuarantined,
} from './quarantine.ts';
export { dropResolvedCandidates } from './resolution.ts';
export { findToken, listContracts, listTokens, type Token } from './tokens/token.ts';
export {
  countStaleWallets,
  countVanished,
  findWallet,
  listWallets,
  positionsOf,
  type Wallet,
  walletsByKey,
} from './wallets/wallet.ts';

export interface Reconciler {
  /**
   * One bounded pass. Returns how many observations it processed, which is 0 while another daemon
   * is the leader, and whether more are due. When the signal aborts, it ends after the evaluations
   * that are running.
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<{ processed: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const OBSERVATIONS_MAX = 100;
const RETRIED_MAX = 20;
/**
 * After so many failures an observation is quarantined. When it takes too long that may be the
 * fault of the database: then after some minutes.
 */
const FAILURES_MAX = 5;
const SLOW_FAILURES_MAX = 10;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 60_000;

/** The reconciler of one daemon. */
interface ReconcilerDeps
  extends Pick<Context, 'db' | 'ids' | 'random' | 'log'>,
    Pick<Deps, 'operations' | 'effectSettings' | 'settings'> {
  pendingPolls: Observer['pendingPolls'];
  daemon: Daemon;
  outbox: Outbox;
}

export function makeReconciler(deps: ReconcilerDeps): Reconciler {
  const { db, ids, operations, effectSettings, settings, pendingPolls } = deps;
  const lease = makeHeldLease(db, { ...deps, name: LEASE, ttlMs: LEASE_MS });
  const unknownWork = makeUnknownWork(db);
  const lastRestore = lastRestoreOf(db);
  let ownWalletsObserved = false;

  async function pass(fence: bigint, now: Instant, signal: AbortSignal | undefined) {
    // Wallets of the ledger's own accounts are observed without a watch.
    if (!ownWalletsObserved) await addWallets(db, ownWalletsOf(effectSettings), now);
    ownWalletsObserved = true;
    const [polls, restoredAt, { fresh: observations, failed }] = await Promise.all([
      pendingPolls(),
      lastRestore(now),
      listUnprocessed(db, now, { fresh: OBSERVATIONS_MAX, failed: RETRIED_MAX }),
    ]);
    const due = new Map<string, Instant>();
    const pollBy = (target: string, at: Instant) =>
      void due.set(target, Math.min(due.get(target) ?? at, at));
    const expediteDue = async () => {
      await db.single((q) => expedite(q, due));
      due.clear();
    };
    const evaluation = {
      ids,
      operations,
      effectSettings,
      settings,
      availableSince: polls.availableSince,
      restoredAt,
      polls,
      pollBy,
    };
    const lease = { name: LEASE, fence };
    const evaluationOf = (observation: UnprocessedObservation): Evaluation => ({
      observation,
      evaluate: (tx) => evaluatorOf(observation)(tx, evaluation, observation, now),
      onFailure: (error) => defer(deps, observation, error, now),
    });
    for (let processed = 0; processed < observations.length; processed += TOGETHER) {
      if (signal?.aborted) return { processed, more: true };
      const some = observations.slice(processed, processed + TOGETHER);
      await runEvaluations(deps, lease, some.map(evaluationOf));
      await expediteDue();
    }
    const retried = await retryFailed(deps, lease, { failed, evaluationOf, signal });
    await expediteDue();
    const seen = walletsOf(observations);
    const failures: unknown[] = [];
    const onFailure = (error: unknown) => failures.push(error);
    for (const group of await unknownWork.next(evaluation, seen, now)) {
      if (signal?.aborted) break;
      const evaluations = group.map((evaluate) => ({ evaluate, onFailure }));
      await runEvaluations(deps, lease, evaluations);
    }
    await expediteDue();
    if (failures.length > 0) throw failures[0];
    const processed = observations.length + retried.count;
    return { processed, more: observations.length === OBSERVATIONS_MAX || retried.more };
  }

  return {
    async runOnce(now, signal) {
      const fence = await lease.take(now);
      if (fence === undefined) return { processed: 0, more: false };
      try {
        return await pass(fence, now, signal);
      } catch (error) {
        if (!isLeaseLost(error)) throw error;
        lease.forget();
        return { processed: 0, more: false };
      }
    },
  };
}

const RESTORE_MS = 1_000;

/** When the database was last restored, at most a second old: the heartbeats that find it are. */
function lastRestoreOf(db: Db): (now: Instant) => Promise<Instant | undefined> {
  let read: { at: Instant; found: Instant | undefined } | undefined;
  return async (now) => {
    if (!read || now < read.at || now >= read.at + RESTORE_MS)
      read = { at: now, found: await findLastRestore(db) };
    return read.found;
  };
}

/**
 * Evaluates those that failed before, each alone. When one takes too long again, the others wait
 * for the next pass, which first evaluates what never failed.
 */
async function retryFailed(
  deps: { db: Db; outbox: Outbox },
  lease: Fence,
  input: {
    failed: readonly UnprocessedObservation[];
    evaluationOf: (observation: UnprocessedObservation) => Evaluation;
    signal: AbortSignal | undefined;
  },
): Promise<{ count: number; more: boolean }> {
  const { failed, evaluationOf, signal } = input;
  let count = 0;
  let isLate = false;
  for (const observation of failed) {
    if (signal?.aborted || isLate) return { count, more: true };
    const evaluation = evaluationOf(observation);
    const onFailure = (error: unknown) => {
      isLate = isSlow(error);
      return evaluation.onFailure(error);
    };
    await runEvaluations(deps, lease, [{ ...evaluation, onFailure }]);
    count += 1;
  }
  return { count, more: failed.length === RETRIED_MAX };
}

/**
 * An observation that failed is tried again later, and quarantined after five failures, or ten if
 * the last one was a timeout. It delays no other.
 */
async function defer(
  { db, random, log }: { db: Db; random: Random; log: Log },
  observation: UnprocessedObservation,
  error: unknown,
  now: Instant,
): Promise<void> {
  const { target, failures } = observation;
  const message = error instanceof Error ? error.message : String(error);
  const isLast = failures + 1 >= (isSlow(error) ? SLOW_FAILURES_MAX : FAILURES_MAX);
  const problem = isLast ? message : null;
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
  return result === 'seen' ? evaluateWallet : evaluateAbsentWallet;
}

interface Evaluation {
  /** What it processes; without it there is nothing to evaluate any more. */
  observation?: UnprocessedObservation;
  /** Returns the events to emit. */
  evaluate: (tx: Tx) => Promise<EventDraft[]>;
  onFailure: (error: unknown) => unknown;
}

/** The lease that each transaction locks. */
interface Fence {
  name: string;
  fence: bigint;
}

/** Observations evaluated in one transaction. */
export const TOGETHER = 8;
/** The deadline of one transaction; a slow one must not delay the others for long. */
const EVALUATION_MS = 5_000;

/**
 * Runs evaluations, each all or nothing: several in one transaction, and if that fails one by one,
 * so that one that fails delays no other. A commit waits for the disk and costs as much as the
 * statements of an evaluation; alone, 60 evaluations a second were the most.
 * @param evaluations in their order; `TOGETHER` of observations at most
 * @throws errors that end the pass: the lease is lost or the database is away
 */
async function runEvaluations(
  deps: { db: Db; outbox: Outbox },
  lease: Fence,
  evaluations: readonly Evaluation[],
): Promise<void> {
  const [first, ...others] = evaluations;
  if (!first) return;
  try {
    const work = (tx: Tx) => runAll(deps.outbox, tx, lease, evaluations);
    await deps.db.begin(work, { snapshot: true, deadlineMs: EVALUATION_MS });
  } catch (error) {
    // Without the lease or the database every evaluation fails; a timeout concerns only one.
    if (isLeaseLost(error) || (isOutage(error) && !isSlow(error))) throw error;
    if (others.length === 0) await first.onFailure(error);
    else for (const one of evaluations) await runEvaluations(deps, lease, [one]);
  }
}

/** Commits the events of the evaluations with them. */
async function runAll(
  outbox: Outbox,
  tx: Tx,
  { name, fence }: Fence,
  evaluations: readonly Evaluation[],
): Promise<void> {
  const isClaimed = await claimAll(tx, { name, fence }, evaluations);
  const drafts: EventDraft[] = [];
  for (const { observation, evaluate } of evaluations)
    if (isClaimed(observation)) drafts.push(...(await evaluate(tx)));
  await outbox.emit(tx, drafts);
}

/** Locks the lease and takes the observations, in one statement. @throws Failure `lease_lost` */
async function claimAll({ sql }: Tx, { name, fence }: Fence, evaluations: readonly Evaluation[]) {
  const observations = evaluations.flatMap(({ observation }) => observation ?? []);
  const rows = await sql<{ fence: bigint | null; targets: string[] }[]>`
    with held as materialized (${lockedFence(sql, name)}),
      processed as (${processedOf(sql, observations)})
    select (select fence from held) as fence, array(select target from processed) as targets`;
  requireFence(rows[0]?.fence, name, fence);
  const targets = new Set(rows[0]?.targets);
  return (observation: UnprocessedObservation | undefined) =>
    !observation || targets.has(observation.target);
}

/** An evaluation that took too long says nothing about the database. */
function isSlow(error: unknown): boolean {
  return isTooSlow(error) || (error instanceof DatabaseError && error.code === 'DEADLINE');
}
