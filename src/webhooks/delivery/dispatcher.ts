/**
 * The dispatcher claims a share of the due deliveries of each endpoint, and passes them to the
 * sender. The statement that claims also examines which endpoints have more (rounds.ts), for the
 * next claim. A pass does not wait for sends, and no transaction is open during one. Daemons run
 * passes concurrently; each claims what no other has claimed.
 */
import { type Instant, monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { inSpan } from '../../kernel/telemetry/spans.ts';
import { endSkip } from '../endpoints/store.ts';
import type { Destination } from './destinations/destination.ts';
import { type AttemptResponse, NOT_PREPARED, notSent } from './http/attempt.ts';
import { rateAllowance, rateFreeAt, roundRobin, shareEvenly, total } from './limits.ts';
import {
  type ActiveEndpoint,
  type Claims,
  cancelDeliveries,
  claimDeliveries,
  type Job,
  planByIndex,
  pullForward,
  type Quota,
} from './queue.ts';
import { ResultWriter, type ResultWriterDeps } from './result-writer.ts';
import { NEVER, Rounds } from './rounds.ts';
import { type Capacity, Sender } from './sender.ts';

interface DispatcherDeps extends ResultWriterDeps {
  destinations: Destination;
  daemons: () => number;
}

export interface Pass {
  claimed: number;
  more: boolean;
  /** When the next unclaimed delivery is due, as far as this pass examined. */
  nextDueAt?: Instant;
}

/** Endpoints served lately that a pass examines, and deliveries of one that it cancels. */
const EXAMINED_MAX = 1_000;
const CANCELLED_MAX = 1_000;
/** Deliveries of a recovered endpoint that are pulled forward when it has none due. */
const PULLED = 100;
/** Of so many endpoints in one pass. */
const RECOVERING_MAX = 10;
/** Recovering endpoints of which it is known how far their deliveries were examined. */
const PULLED_TO_MAX = 10_000;
/** Endpoints of a page of a round: a claim takes as long as its page, and others wait for it. */
const PAGE_MAX = 100;
/** Healthy endpoints, of which nothing is known to be due, that a claim tries beside ready ones. */
const PERHAPS_MAX = 100;
/** Endpoints that were claimed from since, and did not fail last, are examined between rounds. */
const SERVED_MS = 60_000;
/** The next pass when capacity is missing and no `wake` announces it. */
const RECHECK_MS = 50;
const INTERRUPTED_WAIT_MS = 2_000;

interface Candidates {
  ready: readonly ActiveEndpoint[];
  /** Those that may have got a delivery since they were examined. */
  perhaps: readonly ActiveEndpoint[];
}

/** How many deliveries of an endpoint a claim takes. */
interface Share extends Capacity {
  endpoint: ActiveEndpoint;
}

interface Claim extends Claims {
  /** Of the examined endpoints, those whose first delivery may be sent now. */
  ready: ActiveEndpoint[];
  /** The endpoints that had a quota, as they were known. */
  tried: ReadonlyMap<string, Quota['endpoint']>;
}

export class Dispatcher {
  private readonly deps: DispatcherDeps;
  private readonly sender: Sender;
  private readonly resultWriter: ResultWriter;
  private readonly rounds = new Rounds();
  /** The last ready endpoint with a quota, the last other one, and the last served one examined. */
  private lastServed = '';
  private lastTried = '';
  private lastExamined = '';
  /** The endpoints of the last pages, as they were examined last. */
  private readonly examined = new Map<string, ActiveEndpoint>();
  /** Of recovering endpoints, after which due time what waits is still to be examined. */
  private readonly pulledTo = new Map<string, { recoveredAt: Instant | null; after: Instant }>();
  /**
   * Ready endpoints without capacity in the last pass, and on the earlier pages of its round; empty
   * when the daemon itself had no capacity.
   */
  private starved: readonly ActiveEndpoint[] | undefined;

  constructor(deps: DispatcherDeps) {
    const { clock, settings, daemons } = deps;
    this.deps = deps;
    this.resultWriter = new ResultWriter(deps);
    this.sender = new Sender({
      clock,
      settings,
      daemons,
      send: (job, startedAt) => this.send(job, startedAt),
      onSent: (job, startedAt, response) => {
        this.resultWriter.add({ job, startedAt, endedAt: clock.now(), response });
      },
      release: (jobs) => this.resultWriter.release(jobs),
      onProgress: () => this.wakeStarved(),
    });
  }

  async runOnce(now: Instant, signal?: AbortSignal): Promise<Pass> {
    const capacity = this.sender.capacity();
    if (capacity === 0) {
      this.starved = [];
      return { claimed: 0, more: false, nextDueAt: now + RECHECK_MS };
    }
    const inRound = this.rounds.isDue(now);
    let claims = await this.claim(this.candidates(now), capacity, inRound, now);
    // What the examination has found is claimed at once, if nothing else was.
    const found = claims.jobs.length === 0 ? untriedOf(claims) : [];
    if (found.length > 0)
      claims = await this.claim({ ready: found, perhaps: [] }, capacity, inRound, now);
    if (inRound) this.rounds.advance(claims, now);
    return this.passOf(claims, inRound, now, signal);
  }

  /**
   * Ready endpoints, and those served lately, any of which may have got a delivery since: the first
   * one after a pause is claimed without a search for it. If there are ready ones, which may lack
   * capacity for days, some of the healthy others.
   */
  private candidates(now: Instant): Candidates {
    const known = [...this.examined.values()];
    const ready = known.filter((endpoint) => isReady(endpoint, now));
    const others = known.filter((endpoint) => {
      const isUnknown = ready.length === 0 || endpoint.firstDueAt === null;
      return isUnknown && (mayReceiveAt(endpoint) ?? NEVER) <= now;
    });
    if (ready.length === 0) return { ready, perhaps: others };
    const healthy = others.filter(({ consecutiveFailures }) => consecutiveFailures === 0);
    return { ready, perhaps: roundRobin(healthy, this.lastTried, PERHAPS_MAX) };
  }

  private async claim(
    { ready, perhaps }: Candidates,
    capacity: number,
    inRound: boolean,
    now: Instant,
  ): Promise<Claim> {
    const { db, settings } = this.deps;
    const served = this.sender.servedSince(now - SERVED_MS);
    const examined = roundRobin(served, this.lastExamined, EXAMINED_MAX).map(idOf);
    const failing = this.resultWriter.failing();
    const isSettled = ({ endpointId }: ActiveEndpoint) => !failing.has(endpointId);
    const first = this.sharesOf(ready.filter(isSettled), capacity, this.lastServed);
    // Of what those leave. A claim later they would wait for all that becomes ready meanwhile.
    const others = this.sharesOf(perhaps.filter(isSettled), capacity, this.lastTried, first);
    const quotas = [...first, ...others].map(({ endpoint, n }) => quotaOf(endpoint, n, now));
    const { after } = this.rounds;
    const claims = await db.single((q) =>
      claimDeliveries(q, {
        quotas,
        served: inRound ? undefined : examined,
        after,
        limit: PAGE_MAX,
        now,
        leaseUntil: now + settings.send.deadlineMs + settings.leaseMarginMs,
      }),
    );
    this.lastServed = first.at(-1)?.endpointId ?? this.lastServed;
    this.lastTried = others.at(-1)?.endpointId ?? this.lastTried;
    if (!inRound) this.lastExamined = examined.at(-1) ?? '';
    const ofPage = new Set(examined);
    const isExamined = inRound
      ? (id: string) => id > after && (claims.next === '' || id <= claims.next)
      : (id: string) => ofPage.has(id);
    const used = usedUp(quotas, claims.jobs);
    this.remember(claims.active, served.map(idOf), (id) => isExamined(id) || used.has(id));
    this.accept(claims.jobs, now);
    const tried = new Map(quotas.map(({ endpoint }) => [endpoint.endpointId, endpoint]));
    const nowReady = claims.active.filter((each) => isReady(each, now) && isSettled(each));
    return { ...claims, ready: nowReady, tried };
  }

  /**
   * @param cursor the last endpoint that had a share
   * @param beside the shares of others in the same claim, which have a part of the capacity
   */
  private sharesOf(
    candidates: readonly ActiveEndpoint[],
    capacity: number,
    cursor: string,
    beside: readonly Share[] = [],
  ): Share[] {
    const left = Math.max(0, capacity - total(beside));
    const inTurn = roundRobin(candidates, cursor, candidates.length);
    const withCapacity = this.sender.capacities(inTurn, beside).filter(({ n }) => n > 0);
    const chosen = roundRobin(withCapacity, cursor, left);
    const each = shareEvenly(
      chosen.map(({ n }) => n),
      left,
    );
    const byId = new Map(candidates.map((endpoint) => [endpoint.endpointId, endpoint]));
    return chosen.flatMap((share, i) => {
      const endpoint = byId.get(share.endpointId);
      return endpoint ? [{ ...share, n: each[i] ?? 0, endpoint }] : [];
    });
  }

  /**
   * Endpoints that are served keep their place: one without a pending delivery is not examined.
   * @param hasNothing of what has no delivery unless it is among the active ones
   */
  private remember(
    active: readonly ActiveEndpoint[],
    served: readonly string[],
    hasNothing: (endpointId: string) => boolean,
  ): void {
    const known = served.flatMap((id) => this.examined.get(id) ?? []);
    this.examined.clear();
    for (const endpoint of known) {
      const firstDueAt = hasNothing(endpoint.endpointId) ? null : endpoint.firstDueAt;
      this.examined.set(endpoint.endpointId, { ...endpoint, firstDueAt });
    }
    for (const endpoint of active) this.examined.set(endpoint.endpointId, endpoint);
  }

  private accept(jobs: readonly Job[], now: Instant): void {
    this.sender.accept(jobs.filter(({ delivery }) => delivery.body !== null));
    // Events that have been pruned cannot be sent.
    for (const job of jobs.filter(({ delivery }) => delivery.body === null))
      this.resultWriter.add({ job, startedAt: now, endedAt: now, response: undefined });
  }

  private async passOf(
    claims: Claim,
    inRound: boolean,
    now: Instant,
    signal?: AbortSignal,
  ): Promise<Pass> {
    const { jobs, active, ready, deferred, next } = claims;
    // Between rounds what is to be cancelled waits.
    const cancelled = inRound ? active.filter((each) => cancelledBefore(each, now)) : [];
    for (const endpoint of cancelled) if (!signal?.aborted) await this.cancel(endpoint, now);
    const recovering = await this.pullForward(active, now);
    const hasCapacity = this.hasCapacityFor(ready);
    const own = { dueAt: dueAtOf(claims, now), starved: hasCapacity ? [] : ready };
    const { dueAt, starved } = inRound ? this.rounds.leave(own) : own;
    this.starved = starved.length > 0 ? starved : undefined;
    const left = hasCapacity && (jobs.length > 0 || untriedOf(claims).length > 0);
    const claimed = jobs.length;
    const hasPage = inRound && next !== '';
    const more = deferred > 0 || cancelled.length > 0 || recovering > 0;
    if (left || more || (hasPage && this.rounds.isDue(now))) return { claimed, more: true };
    const nextAt = Math.min(dueAt, inRound && !hasPage ? NEVER : this.rounds.nextAt);
    return { claimed, more: false, ...(nextAt === NEVER ? {} : { nextDueAt: nextAt }) };
  }

  /**
   * What failed before an endpoint recovered does not wait for its retry: so many are made due as
   * soon as none is. So they go as fast as the endpoint takes them, and stop when it fails again.
   */
  private async pullForward(active: readonly ActiveEndpoint[], now: Instant): Promise<number> {
    const recovering = active.filter(({ recoveredAt, state, firstDueAt }) => {
      return recoveredAt !== null && state === 'enabled' && (firstDueAt ?? NEVER) > now;
    });
    const some = recovering.slice(0, RECOVERING_MAX);
    for (const endpoint of some) await this.pullForwardOne(endpoint, now);
    return some.length;
  }

  private async pullForwardOne(endpoint: ActiveEndpoint, now: Instant): Promise<void> {
    const { endpointId, recoveredAt } = endpoint;
    const known = this.pulledTo.get(endpointId);
    const from = known?.recoveredAt === recoveredAt ? known.after : now;
    const after = await this.deps.db.begin((tx) =>
      pullForward(tx, endpoint, { now, after: from, limit: PULLED }),
    );
    // Some endpoints are deleted before their end. Those that are left begin again.
    if (this.pulledTo.size >= PULLED_TO_MAX) this.pulledTo.clear();
    if (after === null) this.pulledTo.delete(endpointId);
    else this.pulledTo.set(endpointId, { recoveredAt, after });
  }

  private hasCapacityFor(endpoints: readonly ActiveEndpoint[]): boolean {
    if (endpoints.length === 0 || this.sender.capacity() === 0) return false;
    return this.sender.capacities(endpoints).some(({ n }) => n > 0);
  }

  private async cancel(endpoint: ActiveEndpoint, now: Instant): Promise<void> {
    const { endpointId } = endpoint;
    const before = cancelledBefore(endpoint, now) ?? now;
    await this.deps.db.begin(async (tx) => {
      await planByIndex(tx);
      const n = await cancelDeliveries(tx, endpointId, before, now, CANCELLED_MAX);
      if (n < CANCELLED_MAX) await endSkip(tx.orm, endpointId);
    });
  }

  /**
   * Waits until every claimed delivery is sent and its result stored. After `timeoutMs` waiting
   * deliveries are released and sends are interrupted; both are sent again with the same id.
   */
  async drain(timeoutMs: number): Promise<void> {
    const endMs = monotonicMs() + timeoutMs;
    for (let left = timeoutMs; this.sender.claimed > 0 && left > 0; left = endMs - monotonicMs())
      await this.sender.progress(left);
    if (this.sender.claimed > 0) {
      this.sender.releaseWaiting();
      this.deps.destinations.interrupt();
      while (this.sender.sending > 0) await this.sender.progress(INTERRUPTED_WAIT_MS);
    }
    await this.resultWriter.flush();
  }

  /** Asks for a pass once there is capacity that the last pass lacked. */
  private wakeStarved(): void {
    const { starved } = this;
    if (!starved) return;
    if (starved.length > 0 ? !this.hasCapacityFor(starved) : this.sender.capacity() === 0) return;
    this.starved = undefined;
    this.deps.wake();
  }

  private async send(job: Job, startedAt: Instant): Promise<AttemptResponse> {
    const { destinations, log } = this.deps;
    const { endpointId, eventId } = job.delivery;
    const attributes = { 'tallyhook.endpoint': endpointId, 'tallyhook.event': eventId };
    try {
      return await inSpan('deliver', { kind: 'client', attributes }, async (span) => {
        const ended = await destinations.send(job, startedAt);
        if (ended.status !== null) span.setAttribute('http.response.status_code', ended.status);
        if (ended.error !== null) span.setAttribute('error.type', ended.error);
        return ended;
      });
    } catch (err) {
      log.error({ err, endpointId }, 'webhook request could not be built');
      const refused = err instanceof Failure && err.code === 'url_refused';
      return notSent(refused ? 'blocked_address' : NOT_PREPARED);
    }
  }
}

/** Its deliveries up to then are cancelled; undefined when none are. */
function cancelledBefore({ state, skipBefore }: ActiveEndpoint, now: Instant) {
  return state === 'deleted' ? now : (skipBefore ?? undefined);
}

/** When an endpoint may receive the next delivery; undefined when it may receive none. */
function mayReceiveAt(endpoint: ActiveEndpoint): Instant | undefined {
  const { state, ratePerS, rateUsedUntil, skipBefore } = endpoint;
  if (state !== 'enabled' || skipBefore !== null) return undefined;
  return ratePerS === null ? 0 : rateFreeAt(rateUsedUntil, ratePerS);
}

/** When the next delivery of an endpoint may be sent; undefined when none may. */
function readyAt(endpoint: ActiveEndpoint): Instant | undefined {
  const freeAt = mayReceiveAt(endpoint);
  const { firstDueAt } = endpoint;
  return freeAt === undefined || firstDueAt === null ? undefined : Math.max(firstDueAt, freeAt);
}

function isReady(endpoint: ActiveEndpoint, now: Instant): boolean {
  return (readyAt(endpoint) ?? NEVER) <= now;
}

/** Ready endpoints that had no quota, or one by what is out of date. */
function untriedOf({ ready, tried }: Claim): ActiveEndpoint[] {
  return ready.filter((endpoint) => {
    const before = tried.get(endpoint.endpointId);
    return before === undefined || AS_EXAMINED.some((key) => before[key] !== endpoint[key]);
  });
}

/** The endpoints of which fewer deliveries were claimed than their quotas. */
function usedUp(quotas: readonly Quota[], jobs: readonly Job[]): Set<string> {
  const claimed = Map.groupBy(jobs, ({ delivery }) => delivery.endpointId);
  const without = quotas.filter(({ endpoint: { endpointId }, n }) => {
    return (claimed.get(endpointId)?.length ?? 0) < n;
  });
  return new Set(without.map(({ endpoint }) => endpoint.endpointId));
}

/** What must be as it was examined for a claim. */
const AS_EXAMINED = [
  'ordered',
  'ratePerS',
  'rateUsedUntil',
  'consecutiveFailures',
  'probe',
] as const;

/**
 * When something may be due of the examined endpoints. Ready ones that were not claimed from lack
 * capacity or are locked by another daemon.
 */
function dueAtOf({ active, ready, resumesAt }: Claim, now: Instant): Instant {
  const later = active.flatMap((endpoint) => readyAt(endpoint) ?? []).filter((at) => at > now);
  return Math.min(...later, resumesAt ?? NEVER, ready.length > 0 ? now + RECHECK_MS : NEVER);
}

function quotaOf(endpoint: ActiveEndpoint, share: number, now: Instant): Quota {
  const { ratePerS, rateUsedUntil } = endpoint;
  if (ratePerS === null) return { endpoint, n: share };
  const { allowed, rateUsedUntilAfter } = rateAllowance(rateUsedUntil, ratePerS, now);
  const n = Math.min(share, allowed);
  return { endpoint, n, rateUntil: Array.from({ length: n }, (_, i) => rateUsedUntilAfter(i + 1)) };
}

function idOf({ endpointId }: { endpointId: string }): string {
  return endpointId;
}
