/**
 * Polls the service and records observations; the reconciler processes them. One pass polls the
 * targets that are due, within the budget, and none while the service is down. After a failed poll
 * its target is scheduled again with back-off.
 */
import type { Db, Queryable } from '../db/connect.ts';
import { must } from '../kernel/assert.ts';
import { backoffMs } from '../kernel/backoff.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Random } from '../kernel/random.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type {
  Observation,
  QuotaStore,
  TokenRecord,
  Upstream,
  WalletRecord,
} from '../upstream/upstream.ts';
import * as observations from './observations-store.ts';
import { cachedTargetCount, openOperationSearch } from './open-operations.ts';
import { scanPages } from './scans/scans.ts';
import { type PollIntervals, steadyIntervalMs, withJitter } from './schedule.ts';
import { probeOnce } from './service/probe.ts';
import { mayPoll } from './service/state.ts';
import { expediteProbe, findService, loadQuota, saveQuota } from './service/store.ts';
import { type TargetRef, targetName, toTarget } from './targets.ts';
import * as store from './targets-store.ts';
import { makeWatches, type Watches } from './watches/watches.ts';

export {
  deferObservation,
  listObservations,
  listObservationsBefore,
  listUnprocessed,
  markProcessed,
  newestScan,
  type ObservationCursor,
  releaseObservation,
  type StoredObservation,
  type UnprocessedObservation,
} from './observations-store.ts';
export { requestScan, type ScanRecord } from './scans/scans.ts';
export { type PollIntervals, pendingIntervalMs } from './schedule.ts';
export type { ServiceState } from './service/state.ts';
export { findService } from './service/store.ts';
export { type TargetRef, targetName } from './targets.ts';
export {
  countBacklog,
  countTargets,
  expedite,
  listLastRecords,
  type ObserverBacklog,
} from './targets-store.ts';
export { listWatches, type Watch } from './watches/store.ts';
export type { Watches } from './watches/watches.ts';

export interface ObserverSettings extends PollIntervals {
  /** The share of the budget reserved for steady polls; 0 to 1. */
  steadyShare: number;
  /** The interval between probes, normally and while the service is down. */
  probeMs: number;
  probeDownMs: number;
  /** A claimed target has a lease of twice that. */
  pollTimeoutMs: number;
}

export interface Observer extends Watches {
  /**
   * Polls targets that are due; returns the number of polls and when the next one is due. When the
   * signal aborts, no poll begins, and a scan ends after its page.
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<{ observations: number; nextAt: Instant }>;
  /** Probes the maintenance status if due; returns when the next probe is due. */
  probeOnce(now: Instant): Promise<Instant>;
  /** Adds targets. */
  add(db: Queryable, refs: readonly TargetRef[]): Promise<void>;
  /** The longest interval between polls of a steady target at the present budget. */
  observationAgeMaxMs(): Promise<number>;
  /** Records a passive observation, if the target is polled. */
  noteRead(
    ref: TargetRef,
    observation: Observation<WalletRecord> | Observation<TokenRecord>,
  ): Promise<void>;
}

/** Polls per pass. */
const CLAIM_MAX = 16;
const FAILURE_CAP_MS = 300_000;
/**
 * Since when the service has been available: 0 before the first probe, infinite while it is down.
 * Waits for effects of the service count from then.
 */
export async function availableSince(db: Queryable): Promise<Instant> {
  const service = await findService(db);
  if (!service) return 0;
  return mayPoll(service.state) ? service.since : Number.POSITIVE_INFINITY;
}

/** Adds wallets as targets, without a watch. */
export async function addWallets(
  db: Queryable,
  addrs: readonly string[],
  now: Instant,
): Promise<void> {
  const refs = addrs.map((addr) => toTarget({ kind: 'wallet', addr }));
  if (refs.length > 0) await store.addTargets(db, refs, now);
}

/** Stores the service's limits for the upstream stage. */
export function makeQuotaStore(db: Db, clock: Clock): QuotaStore {
  return {
    load: () => db.single(loadQuota),
    // `single` has a deadline, and a response waits until its limits are stored.
    save: (state) => db.single((q) => saveQuota(q, state, clock.now())),
  };
}

interface Deps extends ObserverDeps {
  targetCount: () => Promise<number>;
}
interface ObserverDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  upstream: Upstream;
  outbox: Outbox;
  metrics: Metrics;
  settings: ObserverSettings;
}
type TargetObservation = Observation<WalletRecord> | Observation<TokenRecord>;

export function makeObserver(observerDeps: ObserverDeps): Observer {
  const { db, clock, upstream, settings } = observerDeps;
  const deps = { ...observerDeps, targetCount: cachedTargetCount(db, clock) };
  let credit = 0;
  // One passive observation of a target at a time; the others show the same.
  const reading = new Set<string>();
  const scheduleOpen = openOperationSearch(db, settings.pendingMinMs);
  return {
    ...makeWatches(deps),
    observationAgeMaxMs: () => observationAgeMaxMs(deps),
    async runOnce(now, signal) {
      const service = await findService(db);
      // Polls resume after a probe has found the service available.
      if (service && !mayPoll(service.state))
        return { observations: 0, nextAt: await probeOnce(deps, now) };
      const scheduleAt = await scheduleOpen(now);
      if (signal?.aborted) return { observations: 0, nextAt: now };
      const free = Math.min(CLAIM_MAX, Math.max(0, upstream.budget.free()));
      if (free === 0) return { observations: 0, nextAt: Math.max(upstream.budget.nextAt(), now) };
      // Steady polls come first in their share of the passes, so that writes cannot starve them.
      credit += settings.steadyShare;
      const steadyFirst = credit >= 1;
      if (steadyFirst) credit -= 1;
      const leaseMs = settings.pollTimeoutMs * 2;
      const due = await store.claimDue(db, now, free, { leaseMs, steadyFirst });
      const causes = await Promise.all(due.map((target) => poll(deps, target, signal)));
      // Probing at once stops all further polls.
      if (causes.includes('maintenance')) {
        await expediteProbe(db, now);
        await probeOnce(deps, now);
      }
      const next = await store.nextDue(db);
      const nextAt = Math.min(next ?? now + settings.steadyMs, scheduleAt);
      return { observations: due.length, nextAt };
    },
    probeOnce: (now) => probeOnce(deps, now),
    add: (on, refs) =>
      refs.length === 0 ? Promise.resolve() : store.addTargets(on, refs.map(toTarget), clock.now()),
    async noteRead(ref, seen) {
      const target = targetName(ref);
      if (seen.result === 'inconclusive' || reading.has(target)) return;
      reading.add(target);
      try {
        const { startedAt } = seen;
        const record = seen.result === 'seen' ? { ...seen.record } : null;
        const gapMs = { pending: settings.pendingMinMs, steady: settings.steadyMs / 2 };
        if (await observations.needsObservation(db, { target, startedAt, record }, gapMs))
          await recordPoll(deps, { name: target, kind: ref.kind, failures: 0 }, seen);
      } finally {
        reading.delete(target);
      }
    },
  };
}

/** A finished scan is repeated when it is requested, or after this time. */
const SCAN_INTERVAL_MS = 86_400_000;

/** Returns the cause if the scan ended without a result. */
async function runScan(
  deps: Deps,
  target: store.DueTarget,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const { db, ids, metrics, settings, random } = deps;
  const { pollTimeoutMs } = settings;
  const pass = await scanPages({ ...deps, pollTimeoutMs, stop: signal }, target);
  if (!pass.ended || !pass.observation) return null;
  const { observation } = pass;
  metrics.polls.inc({ kind: 'scan', result: observation.result });
  const gap =
    observation.result === 'seen'
      ? SCAN_INTERVAL_MS
      : backoffMs(target.failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
  const row = { ...observation, id: ids.next('obs') };
  await db.begin((tx) => observations.recordObservation(tx, row, observation.endedAt + gap));
  return observation.cause;
}

/** Polls one target and records the observation; returns the cause if it is inconclusive. */
async function poll(
  deps: Deps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<string | null> {
  if (target.kind === 'scan') return runScan(deps, target, stop);
  const { upstream, settings } = deps;
  const signal = AbortSignal.timeout(settings.pollTimeoutMs);
  const { contractId: contract, tokenId: token, addr } = target;
  const seen =
    target.kind === 'wallet'
      ? await upstream.account(must(addr, 'address'), 'pending', signal)
      : await upstream.token(must(contract, 'contract'), must(token, 'token'), 'pending', signal);
  await recordPoll(deps, target, seen);
  return seen.result === 'inconclusive' ? seen.cause : null;
}

async function recordPoll(
  deps: Deps,
  target: { name: string; kind: string; failures: number },
  observation: TargetObservation,
): Promise<void> {
  const { db, ids, metrics } = deps;
  const row = observationRow(ids.next('obs'), target.name, target.kind, observation);
  metrics.polls.inc({ kind: target.kind, result: observation.result });
  const nextAt = await nextPollAt(deps, observation, target.failures);
  await db.begin((tx) => observations.recordObservation(tx, row, nextAt));
}

async function nextPollAt(
  deps: Deps,
  observation: TargetObservation,
  failures: number,
): Promise<Instant> {
  const { settings, random } = deps;
  if (observation.result === 'inconclusive') {
    const backoff = backoffMs(failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
    return Math.max(observation.endedAt + backoff, observation.retryAt ?? 0);
  }
  return observation.startedAt + withJitter(await observationAgeMaxMs(deps), random);
}

async function observationAgeMaxMs({ targetCount, upstream, settings }: Deps): Promise<number> {
  const targets = await targetCount();
  const steadyPerS = upstream.budget.ratePerS() * settings.steadyShare;
  return steadyIntervalMs(settings, targets, steadyPerS);
}

function observationRow(
  id: string,
  target: string,
  kind: string,
  observation: TargetObservation,
): observations.ObservationRow {
  const { startedAt, endedAt, result } = observation;
  const record = result === 'seen' ? { ...observation.record } : null;
  const cause =
    result === 'inconclusive'
      ? observation.cause
      : result === 'absent'
        ? observation.message
        : null;
  return { id, target, kind, startedAt, endedAt, result, cause, record };
}
