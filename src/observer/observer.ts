/**
 * What the service says now. One pass takes what is due, as much as the budget allows, looks, and
 * records each look with its answer; what a look means is the reconciler's business. Nothing is
 * looked at while the service is down. A failed look is not repeated: its object falls due again,
 * later each time.
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
import { takeTurn } from './scans/scans.ts';
import { jittered, type Rhythm, steadyGapMs } from './schedule.ts';
import { probeOnce } from './service/probe.ts';
import { mayPoll } from './service/state.ts';
import { expediteProbe, findService, loadQuota, saveQuota } from './service/store.ts';
import * as store from './store.ts';
import { type TargetRef, targetName, toObject } from './targets.ts';
import { makeWatching, type Watching } from './watches/watches.ts';

export {
  countBacklog,
  listObservationsBefore,
  type ObservationCursor,
  type ObserverBacklog,
} from './observation-store.ts';
export { type ScanRecord, scanSoon } from './scans/scans.ts';
export { pendingGapMs, type Rhythm } from './schedule.ts';
export type { ServiceState } from './service/state.ts';
export { findService } from './service/store.ts';
export {
  expedite,
  lastSeen,
  listObservations,
  listUnprocessed,
  markProcessed,
  type StoredObservation,
} from './store.ts';
export { type TargetRef, targetName } from './targets.ts';
export { listWatches, type Watch } from './watches/store.ts';
export type { Watching, WatchWish } from './watches/watches.ts';

export interface ObserverSettings extends Rhythm {
  /** The share of the budget that steady looks keep; 0 to 1. */
  steadyShare: number;
  /** The gap between probes of the maintenance status, and while the service is down. */
  probeMs: number;
  probeDownMs: number;
  /** The whole of one look; its lease is twice that. */
  pollTimeoutMs: number;
}

export interface Observer extends Watching {
  /** One pass over what is due. Answers how many looks were made and when the next one is due. */
  runOnce(now: Instant): Promise<{ observations: number; nextAt: Instant }>;
  /** One probe of the maintenance status, when it is due. Answers when the next one is. */
  probeOnce(now: Instant): Promise<Instant>;
  /** Puts objects under observation. */
  add(db: Queryable, refs: readonly TargetRef[]): Promise<void>;
  /** The longest that a steady object goes without a look, in milliseconds, as things stand. */
  observationAgeMaxMs(): Promise<number>;
  /** Records a read that an app made through the gateway, if its object is under observation. */
  noteRead(
    ref: TargetRef,
    observation: Observation<WalletRecord> | Observation<TokenRecord>,
  ): Promise<void>;
}

/** Looks claimed in one pass at most. */
const CLAIM_MAX = 16;
const FAILURE_CAP_MS = 300_000;
/**
 * How often what is open is enrolled, and how far behind the last time. News is dated before it is
 * committed, as a rule by less than a second; what took longer is found by the wider passes.
 */
const ENROLMENTS = [
  { everyMs: 60_000, overlapMs: Number.POSITIVE_INFINITY },
  { everyMs: 10_000, overlapMs: 20_000 },
  { everyMs: 250, overlapMs: 1_000 },
];

/**
 * Since when the service answers, as far as known: the beginning before the first probe, and
 * infinite while it is down. Waiting for something that the service may still do counts from there.
 */
export async function availableSince(db: Queryable): Promise<Instant> {
  const service = await findService(db);
  if (!service) return 0;
  return mayPoll(service.state) ? service.since : Number.POSITIVE_INFINITY;
}

/** Puts wallets under observation, without a watch. */
export async function addWallets(
  db: Queryable,
  addrs: readonly string[],
  now: Instant,
): Promise<void> {
  const refs = addrs.map((addr) => toObject({ kind: 'wallet', addr }));
  if (refs.length > 0) await store.addObjects(db, refs, now);
}

/** Where the service's deadlines are kept, for the upstream stage. */
export function makeQuotaStore(db: Db, clock: Clock): QuotaStore {
  return {
    load: () => db.single(loadQuota),
    // With a deadline: an answer of the service waits until what it asked for is kept.
    save: (state) => db.single((q) => saveQuota(q, state, clock.now())),
  };
}

interface Deps extends Given {
  /** How many objects there are, as of a few seconds ago. */
  counted: () => Promise<number>;
}
interface Given {
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

/** Counting all objects costs more than a look, so it is done now and then. */
const COUNT_EVERY_MS = 5_000;

function counting(db: Db, clock: Clock): () => Promise<number> {
  let count = { targets: 0, at: Number.NEGATIVE_INFINITY };
  return async () => {
    const now = clock.now();
    if (now < count.at || now >= count.at + COUNT_EVERY_MS)
      count = { targets: await store.countObjects(db), at: now };
    return count.targets;
  };
}

/** Enrols what is open, as a rule only what has news. Answers when again, if this was too soon. */
function enrolling(db: Db): (now: Instant) => Promise<Instant> {
  const passes = ENROLMENTS.map((pass) => ({ ...pass, last: Number.NEGATIVE_INFINITY }));
  return async (now) => {
    const due = passes.findIndex(({ everyMs, last }) => now < last || now >= last + everyMs);
    const pass = passes[due];
    if (!pass) return Math.min(...passes.map(({ everyMs, last }) => last + everyMs));
    const since = Math.min(now, pass.last) - pass.overlapMs;
    await store.scheduleOpen(db, now, Number.isFinite(since) ? since : undefined);
    // A wider pass finds whatever a narrower one would have found.
    for (const narrower of passes.slice(due)) narrower.last = now;
    return Number.POSITIVE_INFINITY;
  };
}

/** The observer of one daemon. */
export function makeObserver(given: Given): Observer {
  const { db, clock, upstream, settings } = given;
  const parts = { ...given, counted: counting(db, clock) };
  let credit = 0;
  const enrol = enrolling(db);
  return {
    ...makeWatching(parts),
    observationAgeMaxMs: () => observationAgeMaxMs(parts),
    async runOnce(now) {
      const service = await findService(db);
      // Nothing is to be seen until a probe says that it is back; whoever is here first makes it.
      if (service && !mayPoll(service.state))
        return { observations: 0, nextAt: await probeOnce(parts, now) };
      const scheduleAt = await enrol(now);
      const room = Math.min(CLAIM_MAX, Math.max(0, upstream.budget.free()));
      if (room === 0) return { observations: 0, nextAt: Math.max(upstream.budget.nextAt(), now) };
      // Steady looks keep their share of the turns, so that a burst of writes blinds nobody.
      credit += settings.steadyShare;
      const steadyFirst = credit >= 1;
      if (steadyFirst) credit -= 1;
      const leaseMs = settings.pollTimeoutMs * 2;
      const due = await store.claimDue(db, now, room, { leaseMs, steadyFirst });
      const ends = await Promise.all(due.map((target) => poll(parts, target)));
      // The service says itself that it is down: the probe that stops all looks comes at once.
      if (ends.includes('maintenance')) {
        await expediteProbe(db, now);
        await probeOnce(parts, now);
      }
      const next = await store.nextDue(db);
      const nextAt = Math.min(next ?? now + settings.steadyMs, scheduleAt);
      return { observations: due.length, nextAt };
    },
    probeOnce: (now) => probeOnce(parts, now),
    add: (on, refs) =>
      refs.length === 0 ? Promise.resolve() : store.addObjects(on, refs.map(toObject), clock.now()),
    async noteRead(ref, seen) {
      const name = targetName(ref);
      if (await store.isObserved(db, name))
        await record(parts, { name, kind: ref.kind, failures: 0 }, seen);
    },
  };
}

/** A sweep that is over falls due again when somebody waits for it: this is the latest. */
const SWEEP_REST_MS = 86_400_000;

/** One turn of a sweep; when it ended, its look is recorded. Answers why it saw nothing, if so. */
async function scanOn(parts: Deps, target: store.DueTarget): Promise<string | null> {
  const { db, ids, metrics, settings, random } = parts;
  const turn = await takeTurn({ ...parts, pollTimeoutMs: settings.pollTimeoutMs }, target);
  if (!turn.ended || !turn.observation) return null;
  const { observation } = turn;
  metrics.polls.inc({ kind: 'scan', result: observation.result });
  const gap =
    observation.result === 'seen'
      ? SWEEP_REST_MS
      : backoffMs(target.failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
  const row = { ...observation, id: ids.next('obs') };
  await db.begin((tx) => store.recordObservation(tx, row, observation.endedAt + gap));
  return observation.cause;
}

/** One look at one object, recorded. Answers why it saw nothing, if so. */
async function poll(parts: Deps, target: store.DueTarget): Promise<string | null> {
  if (target.kind === 'scan') return scanOn(parts, target);
  const { upstream, settings } = parts;
  const signal = AbortSignal.timeout(settings.pollTimeoutMs);
  const { contractId: contract, tokenId: token, addr } = target;
  const seen =
    target.kind === 'wallet'
      ? await upstream.account(must(addr, 'address'), 'pending', signal)
      : await upstream.token(must(contract, 'contract'), must(token, 'token'), 'pending', signal);
  await record(parts, target, seen);
  return seen.result === 'inconclusive' ? seen.cause : null;
}

async function record(
  parts: Deps,
  target: { name: string; kind: string; failures: number },
  observation: TargetObservation,
): Promise<void> {
  const { db, ids, metrics } = parts;
  const row = observationRow(ids.next('obs'), target.name, target.kind, observation);
  metrics.polls.inc({ kind: target.kind, result: observation.result });
  const nextAt = await nextPollAt(parts, observation, target.failures);
  await db.begin((tx) => store.recordObservation(tx, row, nextAt));
}

/** After a look that said something its steady gap; after one that did not a wait that grows. */
async function nextPollAt(
  parts: Deps,
  observation: TargetObservation,
  failures: number,
): Promise<Instant> {
  const { settings, random } = parts;
  if (observation.result === 'inconclusive') {
    const gap = backoffMs(failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
    return Math.max(observation.endedAt + gap, observation.retryAt ?? 0);
  }
  return observation.startedAt + jittered(await observationAgeMaxMs(parts), random);
}

/** How old a look gets at most: once round all objects within the steady share of the budget. */
async function observationAgeMaxMs({ counted, upstream, settings }: Deps): Promise<number> {
  const targets = await counted();
  const steadyPerS = upstream.budget.ratePerS() * settings.steadyShare;
  return steadyGapMs(settings, targets, steadyPerS);
}

function observationRow(
  id: string,
  target: string,
  kind: string,
  observation: TargetObservation,
): store.ObservationRow {
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
