/**
 * What the service says now. One pass takes what is due, as much as the budget allows, looks, and
 * records each look with its answer; what a look means is the reconciler's business. Nothing is
 * looked at while the service is down. A failed look is not repeated: its object falls due again,
 * later each time.
 */
import type { Db, Queryable } from '../db/connect.ts';
import { must } from '../kernel/assert.ts';
import { backoffMs } from '../kernel/backoff.ts';
import type { Chance } from '../kernel/random.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type {
  Look,
  QuotaKeeper,
  TokenRecord,
  Upstream,
  WalletRecord,
} from '../upstream/upstream.ts';
import { jittered, type Rhythm, steadyGapMs } from './schedule.ts';
import { type ObjectRef, objectName, toObject } from './targets.ts';
import { probeOnce } from './service/probe.ts';
import { mayLook } from './service/state.ts';
import { findService, hurryProbe, loadQuota, saveQuota } from './service/store.ts';
import * as store from './store.ts';
import { takeTurn } from './scans/scans.ts';
import { makeWatching, type Watching } from './watches/watches.ts';

export { pendingGapMs, type Rhythm } from './schedule.ts';
export {
  countBacklog,
  type LookPlace,
  listLooksBefore,
  type ObserverBacklog,
} from './observation-store.ts';
export { type ObjectRef, objectName } from './targets.ts';
export type { ServiceState } from './service/state.ts';
export { findService } from './service/store.ts';
export {
  hurry,
  type LookToJudge,
  lastSeen,
  listLooks,
  listUnjudged,
  markJudged,
} from './store.ts';
export { type SweepRecord, sweepSoon } from './scans/scans.ts';
export { listWatches, type Watch } from './watches/store.ts';
export type { Watching, WatchWish } from './watches/watches.ts';

export interface ObserverSettings extends Rhythm {
  /** The share of the budget that steady looks keep; 0 to 1. */
  steadyShare: number;
  /** The gap between probes of the maintenance status, and while the service is down. */
  probeMs: number;
  probeDownMs: number;
  /** The whole of one look; its lease is twice that. */
  lookTimeoutMs: number;
}

export interface Observer extends Watching {
  /** One pass over what is due. Answers how many looks were made and when the next one is due. */
  runOnce(now: Instant): Promise<{ looks: number; nextAt: Instant }>;
  /** One probe of the maintenance status, when it is due. Answers when the next one is. */
  probeOnce(now: Instant): Promise<Instant>;
  /** Puts objects under observation. */
  add(db: Queryable, refs: readonly ObjectRef[]): Promise<void>;
  /** The longest that a steady object goes without a look, in milliseconds, as things stand. */
  lookAgeMaxMs(): Promise<number>;
  /** Records a read that an app made through the gateway, if its object is under observation. */
  noteRead(ref: ObjectRef, look: Look<WalletRecord> | Look<TokenRecord>): Promise<void>;
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
  return mayLook(service.state) ? service.since : Number.POSITIVE_INFINITY;
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
export function makeQuotaKeeper(db: Db, clock: Clock): QuotaKeeper {
  return {
    load: () => db.single(loadQuota),
    // With a deadline: an answer of the service waits until what it asked for is kept.
    save: (state) => db.single((q) => saveQuota(q, state, clock.now())),
  };
}

interface Parts extends Given {
  /** How many objects there are, as of a few seconds ago. */
  counted: () => Promise<number>;
}
interface Given {
  db: Db;
  clock: Clock;
  chance: Chance;
  ids: Ids;
  upstream: Upstream;
  outbox: Outbox;
  metrics: Metrics;
  settings: ObserverSettings;
}
type ObjectLook = Look<WalletRecord> | Look<TokenRecord>;

/** Counting all objects costs more than a look, so it is done now and then. */
const COUNT_EVERY_MS = 5_000;

function counting(db: Db, clock: Clock): () => Promise<number> {
  let count = { objects: 0, at: Number.NEGATIVE_INFINITY };
  return async () => {
    const now = clock.now();
    if (now < count.at || now >= count.at + COUNT_EVERY_MS)
      count = { objects: await store.countObjects(db), at: now };
    return count.objects;
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
    await store.enrolOpen(db, now, Number.isFinite(since) ? since : undefined);
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
    lookAgeMaxMs: () => lookAgeMaxMs(parts),
    async runOnce(now) {
      const service = await findService(db);
      // Nothing is to be seen until a probe says that it is back; whoever is here first makes it.
      if (service && !mayLook(service.state))
        return { looks: 0, nextAt: await probeOnce(parts, now) };
      const enrolAt = await enrol(now);
      const room = Math.min(CLAIM_MAX, Math.max(0, upstream.budget.free()));
      if (room === 0) return { looks: 0, nextAt: Math.max(upstream.budget.nextAt(), now) };
      // Steady looks keep their share of the turns, so that a burst of writes blinds nobody.
      credit += settings.steadyShare;
      const steadyFirst = credit >= 1;
      if (steadyFirst) credit -= 1;
      const leaseMs = settings.lookTimeoutMs * 2;
      const due = await store.claimDue(db, now, room, { leaseMs, steadyFirst });
      const ends = await Promise.all(due.map((object) => lookAt(parts, object)));
      // The service says itself that it is down: the probe that stops all looks comes at once.
      if (ends.includes('maintenance')) {
        await hurryProbe(db, now);
        await probeOnce(parts, now);
      }
      const next = await store.nextDue(db);
      const nextAt = Math.min(next ?? now + settings.steadyMs, enrolAt);
      return { looks: due.length, nextAt };
    },
    probeOnce: (now) => probeOnce(parts, now),
    add: (on, refs) =>
      refs.length === 0 ? Promise.resolve() : store.addObjects(on, refs.map(toObject), clock.now()),
    async noteRead(ref, seen) {
      const name = objectName(ref);
      if (await store.isObserved(db, name))
        await record(parts, { name, kind: ref.kind, failures: 0 }, seen);
    },
  };
}

/** A sweep that is over falls due again when somebody waits for it: this is the latest. */
const SWEEP_REST_MS = 86_400_000;

/** One turn of a sweep; when it ended, its look is recorded. Answers why it saw nothing, if so. */
async function sweepOn(parts: Parts, object: store.DueObject): Promise<string | null> {
  const { db, ids, metrics, settings, chance } = parts;
  const turn = await takeTurn({ ...parts, lookTimeoutMs: settings.lookTimeoutMs }, object);
  if (!turn.ended || !turn.look) return null;
  const { look } = turn;
  metrics.looks.inc({ kind: 'sweep', result: look.result });
  const gap =
    look.result === 'seen'
      ? SWEEP_REST_MS
      : backoffMs(object.failures, settings.pendingMinMs, FAILURE_CAP_MS, chance);
  const row = { ...look, id: ids.next('look') };
  await db.begin((tx) => store.recordLook(tx, row, look.endedAt + gap));
  return look.cause;
}

/** One look at one object, recorded. Answers why it saw nothing, if so. */
async function lookAt(parts: Parts, object: store.DueObject): Promise<string | null> {
  if (object.kind === 'sweep') return sweepOn(parts, object);
  const { upstream, settings } = parts;
  const signal = AbortSignal.timeout(settings.lookTimeoutMs);
  const { contract_id: contract, token_id: token, addr } = object;
  const seen =
    object.kind === 'wallet'
      ? await upstream.account(must(addr, 'address'), 'pending', signal)
      : await upstream.token(must(contract, 'contract'), must(token, 'token'), 'pending', signal);
  await record(parts, object, seen);
  return seen.result === 'inconclusive' ? seen.cause : null;
}

async function record(
  parts: Parts,
  object: { name: string; kind: string; failures: number },
  look: ObjectLook,
): Promise<void> {
  const { db, ids, metrics } = parts;
  const row = lookRow(ids.next('look'), object.name, object.kind, look);
  metrics.looks.inc({ kind: object.kind, result: look.result });
  const nextAt = await nextLookAt(parts, look, object.failures);
  await db.begin((tx) => store.recordLook(tx, row, nextAt));
}

/** After a look that said something its steady gap; after one that did not a wait that grows. */
async function nextLookAt(parts: Parts, look: ObjectLook, failures: number): Promise<Instant> {
  const { settings, chance } = parts;
  if (look.result === 'inconclusive') {
    const gap = backoffMs(failures, settings.pendingMinMs, FAILURE_CAP_MS, chance);
    return Math.max(look.endedAt + gap, look.retryAt ?? 0);
  }
  return look.startedAt + jittered(await lookAgeMaxMs(parts), chance);
}

/** How old a look gets at most: once round all objects within the steady share of the budget. */
async function lookAgeMaxMs({ counted, upstream, settings }: Parts): Promise<number> {
  const objects = await counted();
  const steadyPerS = upstream.budget.ratePerS() * settings.steadyShare;
  return steadyGapMs(settings, objects, steadyPerS);
}

function lookRow(id: string, object: string, kind: string, look: ObjectLook): store.LookRow {
  const { startedAt, endedAt, result } = look;
  const record = result === 'seen' ? { ...look.record } : null;
  const cause = result === 'inconclusive' ? look.cause : result === 'absent' ? look.message : null;
  return { id, object, kind, startedAt, endedAt, result, cause, record };
}
