/** Polls targets and records what they show. */
import type { Context } from '../db/context.ts';
import { DAY_MS, type Instant, pause } from '../kernel/clock.ts';
import { backoffMs } from '../kernel/retry.ts';
import type { Observation, TokenRecord, Upstream, WalletRecord } from '../upstream/upstream.ts';
import { read, readableOf, withConfirmedAbsence } from './absence.ts';
import * as observations from './observations.ts';
import { openOperationSearch } from './open-operations.ts';
import { pollListing, scheduleListing } from './scans/listing.ts';
import { scanPages } from './scans/scans.ts';
import { changesPerS, learnRate } from './schedule/change-rate.ts';
import {
  maximumAgeMs,
  type PollIntervals,
  steadyIntervalMs,
  withJitter,
} from './schedule/price.ts';
import type { Pricing } from './schedule/pricing.ts';
import * as store from './targets.ts';

export interface ObserverSettings extends PollIntervals {
  /** The shortest interval between polls of a steady target. */
  minGapMs: number;
  /** Between polls of a token whose operations have all settled, and that is not watched. */
  settledMs: number;
  /** L: how long a write may take to show in reads, in milliseconds. */
  readLagMs: number;
  /** The share of the budget reserved for steady polls; 0 to 1. */
  steadyShare: number;
  /** The interval between probes, normally and while the service is down. */
  probeMs: number;
  probeDownMs: number;
  /** A claimed target has a lease of twice that. */
  pollTimeoutMs: number;
}

export interface PollDeps extends Omit<Context, 'log'> {
  upstream: Upstream;
  settings: ObserverSettings;
  pricing: () => Promise<Pricing>;
}
export type TargetObservation = Observation<WalletRecord | TokenRecord>;

/** Targets claimed at once, and how long a pass goes on claiming while polls are open. */
const CLAIM_MAX = 16;
const PASS_MS = 5_000;
/**
 * How soon such a pass looks again for targets that have come due, at least and at most. A claim
 * for each poll that ends took half a core at a hundred polls a second.
 */
const CLAIM_MS = 20;
const IDLE_MS = 250;
const FAILURE_CAP_MS = 300_000;

/** What was claimed, and when targets of open operations are to be searched again. */
type Claim = store.Claimed & { searchAt: Instant };

/**
 * Makes the targets of open operations due, and claims as many due ones as the budget has free;
 * steady ones first in their share. Undefined when it has none free. Whether operations are open
 * is known from the claim before.
 */
export function claimsOf({ db, upstream, settings }: PollDeps) {
  const scheduleOpen = openOperationSearch(db, settings);
  let credit = 0;
  let isOpen = true;
  const claim = async (now: Instant): Promise<Claim | undefined> => {
    const wasOpen = isOpen;
    const searchAt = wasOpen ? await scheduleOpen(now) : Number.POSITIVE_INFINITY;
    const free = Math.min(CLAIM_MAX, upstream.budget.free());
    if (free <= 0) return undefined;
    credit += settings.steadyShare;
    const steadyFirst = credit >= 1;
    if (steadyFirst) credit -= 1;
    const leaseMs = settings.pollTimeoutMs * 2;
    const claimed = await store.claimDue(db, now, free, { leaseMs, steadyFirst });
    isOpen = claimed.hasOpen && claimed.mayPoll;
    if (!isOpen || wasOpen) return { ...claimed, searchAt };
    return claimed.targets.length === 0 ? claim(now) : { ...claimed, searchAt: now };
  };
  return (now: Instant) => (upstream.budget.free() > 0 ? claim(now) : Promise.resolve(undefined));
}

/** The end of a poll. */
interface PollResult {
  /** Why it is inconclusive. */
  cause: string | null;
  /** Whether the reconciler has to process it. */
  unprocessed: boolean;
  /** Its target is due again then, or later. */
  nextAt: Instant;
}

/** What one pass of polls is given. */
interface PassInput {
  now: Instant;
  claim: ReturnType<typeof claimsOf>;
  /** Called after each poll that the reconciler has to process. */
  onUnprocessed: () => void;
  signal: AbortSignal | undefined;
}

/**
 * Polls due targets as fast as the budget allows, until none is due and all polls have ended.
 * Returns how many, the causes of those without a result, the last claim if any was made, and when
 * the first of the polled targets may be due again.
 * @throws the first error, when all polls have ended
 */
export async function pollDue(deps: PollDeps, input: PassInput) {
  const { clock, upstream } = deps;
  const { now, claim, signal } = input;
  const causes = new Set<string | null>();
  const errors: unknown[] = [];
  const open = new Set<Promise<unknown>>();
  const until = clock.now() + PASS_MS;
  let count = 0;
  let claimed: Claim | undefined;
  let nextAt = Number.POSITIVE_INFINITY;
  do {
    const at = Math.max(now, clock.now());
    const stopped = signal?.aborted || at > until || causes.has('maintenance') || errors.length > 0;
    const newest = stopped ? undefined : await claim(at);
    claimed = newest ?? claimed;
    const due = newest?.targets ?? [];
    count += due.length;
    for (const target of due) {
      const ended: Promise<unknown> = poll(deps, target, signal)
        .then((result) => {
          causes.add(result.cause);
          nextAt = Math.min(nextAt, result.nextAt);
          if (result.unprocessed) input.onUnprocessed();
        })
        .catch((error: unknown) => errors.push(error))
        .finally(() => open.delete(ended));
      open.add(ended);
    }
    const dueAt = Math.min(claimed?.nextAt ?? Number.POSITIVE_INFINITY, nextAt, at + IDLE_MS);
    const nextMs = Math.max(CLAIM_MS, Math.max(upstream.budget.nextAt(), dueAt) - clock.now());
    const ended = Promise.all(open);
    if (open.size > 0) await (stopped ? ended : Promise.race([ended, pause(nextMs)]));
  } while (open.size > 0);
  if (errors.length > 0) throw errors[0];
  return { count, causes, claimed, nextAt };
}

/** A finished scan is repeated when it is requested, or after this time. */
const SCAN_INTERVAL_MS = DAY_MS;

async function runScan(
  deps: PollDeps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<PollResult> {
  const { db, ids, metrics, settings, random } = deps;
  const { pollTimeoutMs } = settings;
  const observation = await scanPages({ ...deps, pollTimeoutMs, stop }, target);
  if (!observation) return { cause: null, unprocessed: false, nextAt: deps.clock.now() };
  metrics.polls.inc({ kind: 'scan', result: observation.result });
  const gap =
    observation.result === 'seen'
      ? SCAN_INTERVAL_MS
      : backoffMs(target.failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
  const row = { ...observation, id: ids.next('obs') };
  const nextAt = observation.endedAt + gap;
  const plan = observations.plannedAt(nextAt);
  const unprocessed = await db.single((q) => observations.recordObservation(q, row, plan));
  return { cause: observation.cause, unprocessed, nextAt };
}

/** Between the passes of a walk through a long list. */
const NEXT_PAGES_MS = 100;

/** Reads pages of the list of a watched contract. */
async function runListing(
  deps: PollDeps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<PollResult> {
  const { db, clock, metrics, pricing, settings, random, upstream } = deps;
  const { pollTimeoutMs } = settings;
  const { price, bounds } = await pricing();
  const startedAt = clock.now();
  const perS = upstream.budget.steadyMinPerS();
  const walkEveryMs = (pages: number) => maximumAgeMs(settings, pages, perS);
  const { cause, unprocessed, more } = await pollListing(
    { ...deps, pollTimeoutMs, walkEveryMs, stop },
    target,
  );
  metrics.polls.inc({ kind: 'contract', result: cause === null ? 'seen' : 'inconclusive' });
  const gap = steadyIntervalMs(Math.sqrt(changesPerS(target)), price, bounds);
  const backoff = backoffMs(target.failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
  const hasFailed = cause !== null;
  const nextMs = hasFailed ? backoff : more ? NEXT_PAGES_MS : withJitter(gap, random);
  const nextAt = clock.now() + nextMs;
  await scheduleListing(db, target.name, nextAt, { startedAt, hasFailed });
  return { cause, unprocessed: unprocessed > 0, nextAt };
}

/** Polls one target and records the observation. */
async function poll(
  deps: PollDeps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<PollResult> {
  if (target.kind === 'scan') return runScan(deps, target, stop);
  if (target.kind === 'contract') return runListing(deps, target, stop);
  const { upstream, settings } = deps;
  const { pollTimeoutMs } = settings;
  const ref = readableOf(target);
  const answer = await read(upstream, ref, target.pending ? 'pending' : 'steady', pollTimeoutMs);
  const seen = await withConfirmedAbsence({ ...deps, pollTimeoutMs }, ref, answer);
  const recorded = await recordPoll(deps, target, seen);
  return { cause: seen.result === 'inconclusive' ? seen.cause : null, ...recorded };
}

/** A target that has been polled, and what was known of it before. */
type Polled = Pick<store.DueTarget, 'name' | 'kind' | 'failures'> &
  Partial<Pick<store.DueTarget, 'schedule'>> &
  observations.Known;

/** Records a poll, or a passive observation, and schedules the next poll of its target. */
export async function recordPoll(
  deps: PollDeps,
  target: Polled,
  observation: TargetObservation,
): Promise<Omit<PollResult, 'cause'>> {
  const { db, ids, metrics } = deps;
  const row = observationRow(ids.next('obs'), target.name, target.kind, observation);
  metrics.polls.inc({ kind: target.kind, result: observation.result });
  const plan = await planOf(deps, target, observation);
  const unprocessed = await db.single((q) => observations.recordObservation(q, row, plan));
  return { unprocessed, nextAt: Math.min(plan.changed.nextPollAt, plan.same.nextPollAt) };
}

async function planOf(
  { pricing, settings, random }: PollDeps,
  { failures, lastStartedAt, schedule, ...known }: Polled,
  observation: TargetObservation,
): Promise<observations.PollPlan> {
  const { startedAt } = observation;
  if (observation.result === 'inconclusive') {
    // A failure of the service, however long, does not end the guaranteed age of its targets.
    const capMs = Math.min(FAILURE_CAP_MS, settings.steadyMs);
    const backoff = backoffMs(failures, settings.pendingMinMs, capMs, random);
    const at = Math.max(observation.endedAt + backoff, observation.retryAt ?? 0);
    return observations.plannedAt(at);
  }
  const { price, bounds } = await pricing();
  const lesson = (changed: boolean) => {
    // The first poll shows no change.
    const rate =
      lastStartedAt === null ? null : learnRate(known, (startedAt - lastStartedAt) / 1000, changed);
    if (schedule === 'never') return { nextPollAt: store.NEVER, rate };
    const steady = steadyIntervalMs(Math.sqrt(changesPerS(rate ?? known)), price, bounds);
    const gap = schedule === 'seldom' ? Math.max(settings.settledMs, steady) : steady;
    return { nextPollAt: startedAt + withJitter(gap, random), rate };
  };
  const processAfterMs = settings.steadyMs / 2;
  return { changed: lesson(true), same: lesson(false), processAfterMs };
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
