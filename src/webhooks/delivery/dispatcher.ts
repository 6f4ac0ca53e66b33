/**
 * The dispatcher finds endpoints with due deliveries (rounds.ts), claims a share of each in one
 * transaction, and passes them to the sender. A pass does not wait for sends, and no transaction is
 * open during one. Daemons run passes concurrently; each claims what no other has claimed.
 */
import type { Tx } from '../../db/connect.ts';
import { type Instant, monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { inSpan } from '../../kernel/telemetry/spans.ts';
import { endSkip } from '../endpoints/store.ts';
import type { WebhookSettings } from '../settings.ts';
import { type AttemptClient, type AttemptResponse, NOT_PREPARED, notSent } from './http/attempt.ts';
import type { RequestBuilder } from './http/request.ts';
import { inFlightMax, rateAllowance, rateFreeAt, roundRobin, shareEvenly } from './limits.ts';
import {
  type ActiveEndpoint,
  type ActivePage,
  type ClaimedDelivery,
  type ClaimedEndpoint,
  cancelDeliveries,
  claim,
  claimInOrder,
  type Job,
  listActive,
  listActiveOf,
  lockEndpoints,
  planClaims,
  saveRateUsage,
} from './queue.ts';
import { ResultWriter, type ResultWriterDeps } from './result-writer.ts';
import { Rounds } from './rounds.ts';
import { Sender } from './sender.ts';

interface DispatcherDeps extends ResultWriterDeps {
  requests: RequestBuilder;
  client: AttemptClient;
  daemons: () => number;
}

export interface Pass {
  claimed: number;
  more: boolean;
  /** When the next unclaimed delivery is due, as far as this pass examined. */
  nextDueAt?: Instant;
}

interface Share {
  endpointId: string;
  n: number;
}

/** Endpoints examined, and deliveries cancelled per endpoint, in one pass. */
const EXAMINED_MAX = 1_000;
const CANCELLED_MAX = 1_000;
/** Endpoints from which deliveries were claimed since are examined between rounds. */
const SERVED_MS = 60_000;
/** The next pass when capacity is missing and no `wake` announces it. */
const RECHECK_MS = 50;
const NEVER = Number.POSITIVE_INFINITY;
const INTERRUPTED_WAIT_MS = 2_000;

export class Dispatcher {
  private readonly deps: DispatcherDeps;
  private readonly sender: Sender;
  private readonly resultWriter: ResultWriter;
  private readonly rounds = new Rounds();
  /** The last endpoint claimed from. */
  private lastServed = '';
  /** Ready endpoints without capacity in the last pass; empty: the daemon itself had none. */
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
    const pass = await this.deps.db.begin(async (tx) => {
      await planClaims(tx);
      const examined = await this.examine(tx, inRound, now);
      return {
        ...examined,
        ...(await this.claimShares(tx, examined.active, capacity, now, signal)),
      };
    });
    const { active, ready, chosen, jobs, resumesAt } = pass;
    if (inRound) this.rounds.advance(pass, now);
    this.starved = chosen.length === 0 && ready.length > 0 ? ready : undefined;
    this.lastServed = chosen.at(-1)?.endpointId ?? this.lastServed;
    this.sender.accept(jobs.filter(({ delivery }) => delivery.body !== null));
    // Events that have been pruned cannot be sent.
    for (const job of jobs.filter(({ delivery }) => delivery.body === null))
      this.resultWriter.add({ job, startedAt: now, endedAt: now, response: undefined });
    const more = jobs.length + pass.deferred > 0 || pass.cancelled || pass.next !== '';
    if (more) return { claimed: jobs.length, more };
    // Ready endpoints that were not claimed from lack capacity or are locked by another daemon.
    const next = Math.min(
      nextDueAt(active, now),
      resumesAt ?? NEVER,
      ready.length > 0 ? now + RECHECK_MS : NEVER,
      inRound ? NEVER : this.rounds.nextAt,
    );
    return { claimed: 0, more, ...(next === NEVER ? {} : { nextDueAt: next }) };
  }

  private async examine(tx: Tx, inRound: boolean, now: Instant): Promise<ActivePage> {
    if (inRound) return listActive(tx, now, this.rounds.after, EXAMINED_MAX);
    const served = roundRobin(
      this.sender.servedSince(now - SERVED_MS),
      this.lastServed,
      EXAMINED_MAX,
    );
    const page = await listActiveOf(
      tx,
      now,
      served.map(({ endpointId }) => endpointId),
    );
    // What is to be cancelled waits for a round.
    return {
      ...page,
      active: page.active.filter((each) => cancelledBefore(each, now) === undefined),
    };
  }

  private async claimShares(
    tx: Tx,
    active: readonly ActiveEndpoint[],
    capacity: number,
    now: Instant,
    signal?: AbortSignal,
  ) {
    const cancelled = active.flatMap((endpoint) => {
      const before = cancelledBefore(endpoint, now);
      return before === undefined ? [] : [{ endpointId: endpoint.endpointId, before }];
    });
    for (const { endpointId, before } of cancelled)
      if (!signal?.aborted) await cancel(tx, endpointId, before, now);
    const ready = active.filter((endpoint) => (readyAt(endpoint) ?? NEVER) <= now);
    const shares = this.sender.capacities(roundRobin(ready, this.lastServed, ready.length));
    const withCapacity = shares.filter(({ n }) => n > 0);
    const chosen = roundRobin(withCapacity, this.lastServed, capacity);
    const claimed =
      chosen.length > 0 ? await this.claim(tx, chosen, capacity, now) : { jobs: [], deferred: 0 };
    return { ready, chosen, cancelled: cancelled.length > 0, ...claimed };
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
      this.deps.client.interrupt();
      while (this.sender.sending > 0) await this.sender.progress(INTERRUPTED_WAIT_MS);
    }
    await this.resultWriter.flush();
  }

  /** Asks for a pass once there is capacity that the last pass lacked. */
  private wakeStarved(): void {
    const { starved } = this;
    if (!starved || this.sender.capacity() === 0) return;
    if (starved.length > 0 && !this.sender.capacities(starved).some(({ n }) => n > 0)) return;
    this.starved = undefined;
    this.deps.wake();
  }

  private async claim(
    tx: Tx,
    chosen: readonly Share[],
    capacity: number,
    now: Instant,
  ): Promise<{ jobs: Job[]; deferred: number }> {
    const { settings, daemons } = this.deps;
    const leaseUntil = now + settings.send.deadlineMs + settings.leaseMarginMs;
    const shares = shareEvenly(
      chosen.map(({ n }) => n),
      capacity,
    );
    const shareOf = new Map(chosen.map(({ endpointId }, i) => [endpointId, shares[i] ?? 0]));
    const endpoints = await lockEndpoints(tx, [...shareOf.keys()], now);
    const quotas = endpoints.map((endpoint) => {
      const { endpointId, ordered } = endpoint;
      const share = shareOf.get(endpointId) ?? 0;
      return { endpointId, ordered, n: quotaOf(endpoint, share, now, settings, daemons()) };
    });
    const unordered = quotas.filter((q) => !q.ordered && q.n > 0);
    const ordered = quotas.filter((q) => q.ordered && q.n > 0);
    const claims = unordered.length > 0 ? await claim(tx, unordered, now, leaseUntil) : [];
    let deferred = 0;
    if (ordered.length > 0) {
      const inOrder = await claimInOrder(tx, ordered, now, leaseUntil);
      deferred = inOrder.deferred;
      claims.push(...inOrder.claims);
    }
    await saveRateUsage(tx, rateUsageAfter(endpoints, claims, now));
    const byId = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint]));
    const jobs = claims.flatMap((delivery) => {
      const endpoint = byId.get(delivery.endpointId);
      return endpoint ? [{ delivery, endpoint, leaseUntil }] : [];
    });
    return { jobs, deferred };
  }

  private async send(job: Job, startedAt: Instant): Promise<AttemptResponse> {
    const { requests, client, log } = this.deps;
    const { delivery, endpoint } = job;
    try {
      const event = { id: delivery.eventId, body: delivery.body ?? '' };
      const request = requests.build(endpoint, event, startedAt);
      const attributes = { 'tallyhook.endpoint': endpoint.endpointId, 'tallyhook.event': event.id };
      const response = await inSpan('deliver', { kind: 'client', attributes }, async (span) => {
        const ended = await client.post(request);
        if (ended.status !== null) span.setAttribute('http.response.status_code', ended.status);
        if (ended.error !== null) span.setAttribute('error.type', ended.error);
        return ended;
      });
      const redact = (text: string) => requests.redact(endpoint, text);
      const headers = Object.entries(response.headers ?? {});
      return {
        ...response,
        body: response.body && redact(response.body),
        headers: response.headers && Object.fromEntries(headers.map(([k, v]) => [k, redact(v)])),
      };
    } catch (err) {
      log.error({ err, endpointId: delivery.endpointId }, 'webhook request could not be built');
      const refused = err instanceof Failure && err.code === 'url_refused';
      return notSent(refused ? 'blocked_address' : NOT_PREPARED);
    }
  }
}

/** Its deliveries up to then are cancelled; undefined when none are. */
function cancelledBefore({ state, skipBefore }: ActiveEndpoint, now: Instant) {
  return state === 'deleted' ? now : (skipBefore ?? undefined);
}

async function cancel(tx: Tx, endpointId: string, before: Instant, now: Instant): Promise<void> {
  const n = await cancelDeliveries(tx, endpointId, before, now, CANCELLED_MAX);
  if (n < CANCELLED_MAX) await endSkip(tx.orm, endpointId);
}

/** When the next delivery of an endpoint may be sent; undefined when none may. */
function readyAt(endpoint: ActiveEndpoint): Instant | undefined {
  const { state, firstDueAt, ratePerS, rateUsedUntil, skipBefore } = endpoint;
  if (state !== 'enabled' || firstDueAt === null || skipBefore !== null) return undefined;
  const rateAt = ratePerS === null ? 0 : rateFreeAt(rateUsedUntil, ratePerS);
  return Math.max(firstDueAt, rateAt);
}

function nextDueAt(active: readonly ActiveEndpoint[], now: Instant): Instant {
  const later = active.flatMap((endpoint) => readyAt(endpoint) ?? []).filter((at) => at > now);
  return Math.min(...later, NEVER);
}

function quotaOf(
  endpoint: ClaimedEndpoint,
  share: number,
  now: Instant,
  settings: WebhookSettings,
  daemons: number,
): number {
  const { ratePerS, rateUsedUntil, consecutiveFailures } = endpoint;
  // Its health may have changed since it was examined without a lock.
  const most =
    consecutiveFailures > 0
      ? Math.min(share, inFlightMax(settings.inFlightPerEndpoint, consecutiveFailures, daemons))
      : share;
  if (ratePerS === null) return most;
  return Math.min(most, rateAllowance(rateUsedUntil, ratePerS, now).allowed);
}

function rateUsageAfter(
  endpoints: readonly ClaimedEndpoint[],
  claims: readonly ClaimedDelivery[],
  now: Instant,
) {
  return endpoints.flatMap(({ endpointId, ratePerS, rateUsedUntil }) => {
    const n = claims.filter((delivery) => delivery.endpointId === endpointId).length;
    if (ratePerS === null || n === 0) return [];
    const { rateUsedUntilAfter } = rateAllowance(rateUsedUntil, ratePerS, now);
    return [{ endpointId, rateUsedUntil: rateUsedUntilAfter(n) }];
  });
}
