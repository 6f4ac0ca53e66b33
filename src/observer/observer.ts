/**
 * Polls the service and records observations; the reconciler processes them. One pass polls the
 * targets that are due, within the budget, and none while the service is down. After a failed poll
 * its target is scheduled again with back-off.
 */
import type { Db, Queryable } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { beginSeries } from '../kernel/telemetry/metrics.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type Readable, withConfirmedAbsence } from './absence.ts';
import { findIfNeeded } from './observations.ts';
import { claimsOf, type PollDeps, pollDue, recordPoll, type TargetObservation } from './polls.ts';
import { makeSamples } from './schedule/minutes.ts';
import { makePendingPolls, type PendingPolls } from './schedule/pending.ts';
import { makePricing, type Pricing } from './schedule/pricing.ts';
import { countingReads, findService, probeOnce, realReporter } from './service/service.ts';
import { availableSinceOf } from './service/state.ts';
import * as store from './targets.ts';
import { type TargetRef, targetName, toTarget } from './targets.ts';
import { makeWatches, type Watches } from './watches.ts';

export type { Readable } from './absence.ts';
export {
  deferObservation,
  hasUnprocessed,
  listObservations,
  listObservationsAround,
  listObservationsBefore,
  listUnprocessed,
  newestScan,
  newestScans,
  processedOf,
  releaseObservation,
  type StoredObservation,
  type UnprocessedObservation,
} from './observations.ts';
export type { ObserverSettings } from './polls.ts';
export { makeQuotaStore } from './quota.ts';
export { findListedAt } from './scans/listing.ts';
export { requestScan } from './scans/scans.ts';
export { deletePollMinutes, listPollActivity } from './schedule/minutes.ts';
export type { PendingPolls, Wait } from './schedule/pending.ts';
export type { PollIntervals } from './schedule/price.ts';
export type { Pricing } from './schedule/pricing.ts';
export { findService, listServiceChanges } from './service/service.ts';
export { announcementFields } from './service/state.ts';
export {
  countBacklog,
  countLate,
  countTargets,
  deleteFinished,
  expedite,
  hasDueTarget,
  listLastRecords,
  type TargetRef,
  targetName,
} from './targets.ts';
export { listWatches } from './watches.ts';

export interface Observer extends Watches {
  /**
   * Polls targets that are due; returns the number of polls and when the next one is due. When the
   * signal aborts, no poll begins, and a scan ends after its page. `onUnprocessed` is called after
   * each poll that the reconciler has to process.
   */
  runOnce(
    now: Instant,
    signal?: AbortSignal,
    onUnprocessed?: () => void,
  ): Promise<{ observations: number; nextAt: Instant }>;
  /** Probes the maintenance status if due; returns when the next probe is due. */
  probeOnce(now: Instant): Promise<Instant>;
  /** Adds targets. */
  add(db: Queryable, refs: readonly TargetRef[]): Promise<void>;
  /**
   * Adds a target that the caller polls now; the observer polls it from that instant on. False
   * while a deadline of polls stands.
   */
  addForFirstPoll(db: Db, ref: TargetRef, dueAt: Instant): Promise<boolean>;
  /** When the next poll is due that no daemon has begun; null without targets. */
  nextPollAt(): Promise<Instant | null>;
  /** The present price of a poll, and the intervals that follow for steady targets. */
  pricing(): Promise<Pricing>;
  /**
   * The guaranteed maximum age of steady targets if so many are added. Counts the targets anew,
   * unlike `pricing`: takes half a second for a million.
   */
  maximumAgeMs(added: number): Promise<number>;
  /**
   * When pending targets are polled next, now; what they teach is stored some seconds later. With
   * that, since when the service has been available.
   */
  pendingPolls(): Promise<PendingPolls & { availableSince: Instant }>;
  /** Adds the requests of this daemon since the last call, and the present delay, to the minute. */
  sampleMinute(now: Instant): Promise<void>;
  /** Records a passive observation, if the target is polled. */
  noteRead(ref: Readable, observation: TargetObservation): Promise<void>;
}

/** Since when the service has been available, as of `availableSinceOf`. */
export async function availableSince(db: Queryable): Promise<Instant> {
  return availableSinceOf(await findService(db));
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

type ObserverDeps = Omit<PollDeps, 'pricing'> & { outbox: Outbox };

/** How soon a pass that could claim nothing of what is due is repeated. */
const RETRY_MS = 100;

/** How soon one is that found no budget. */
const SOON_MS = 10;

export function makeObserver(observerDeps: ObserverDeps): Observer {
  const { db, clock, settings } = observerDeps;
  beginSeries(observerDeps.metrics.polls, {
    kind: ['wallet', 'token', 'contract', 'scan'],
    result: ['seen', 'absent', 'inconclusive'],
  });
  const { upstream, real } = countingReads(observerDeps.upstream);
  const pricing = makePricing({ ...observerDeps, budget: upstream.budget });
  const deps = { ...observerDeps, upstream, real, pricing };
  // One passive observation of a target at a time; the others show the same.
  const reading = new Set<string>();
  const claim = claimsOf(deps);
  const reportReal = realReporter(deps);

  return {
    ...makeWatches({ ...deps, budget: upstream.budget }),
    pricing,
    maximumAgeMs: pricing.maximumAgeMs,
    pendingPolls: makePendingPolls(deps),
    async nextPollAt() {
      const next = await store.nextDue(db);
      return next === store.NEVER ? null : next;
    },
    async runOnce(now, signal, onUnprocessed = () => {}) {
      const polls = await pollDue(deps, { now, claim, onUnprocessed, signal });
      const { count: observations, claimed, causes } = polls;
      // Also while what waits for the budget is to be polled first.
      if (!claimed)
        return { observations, nextAt: Math.max(upstream.budget.nextAt(), clock.now() + SOON_MS) };
      // Polls resume after a probe has found the service available.
      if (!claimed.mayPoll) return { observations, nextAt: await probeOnce(deps, now) };
      // Probing at once may stop all further polls.
      if (await reportReal(now, causes.has('maintenance'))) await probeOnce(deps, now);
      const next = Math.min(claimed.nextAt ?? now + settings.steadyMs, polls.nextAt);
      // What is due and was not claimed waits for the reconciler, or another daemon has it.
      const dueAt = observations === 0 && next <= now ? now + RETRY_MS : next;
      const pollAt = Math.max(dueAt, upstream.budget.nextAt());
      return { observations, nextAt: Math.min(pollAt, claimed.searchAt) };
    },
    probeOnce: (now) => probeOnce(deps, now),
    add: (on, refs) =>
      refs.length === 0 ? Promise.resolve() : store.addTargets(on, refs.map(toTarget), clock.now()),
    addForFirstPoll(on, ref, dueAt) {
      const times = { now: clock.now(), dueAt };
      return on.single((q) => store.addForFirstPoll(q, toTarget(ref), times));
    },
    sampleMinute: makeSamples(db, upstream.budget, pricing),
    async noteRead(ref, read) {
      const target = targetName(ref);
      if (reading.has(target)) return;
      reading.add(target);
      try {
        const { pollTimeoutMs } = settings;
        const seen = await withConfirmedAbsence({ ...deps, pollTimeoutMs }, ref, read);
        if (seen.result === 'inconclusive') return;
        const { startedAt } = seen;
        const record = seen.result === 'seen' ? { ...seen.record } : null;
        const gapMs = { pending: settings.pendingMinMs, steady: settings.steadyMs / 2 };
        const known = await findIfNeeded(db, { target, startedAt, record }, gapMs);
        if (known)
          await recordPoll(deps, { ...known, name: target, kind: ref.kind, failures: 0 }, seen);
      } finally {
        reading.delete(target);
      }
    },
  };
}
