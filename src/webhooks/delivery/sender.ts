/**
 * Sends claimed deliveries, round-robin over the endpoints. Concurrency is limited per endpoint,
 * for retries, and by the slots of quick and slow sends. A send that takes longer than
 * `slowAfterMs` moves to a slow slot, and its endpoint uses slow slots until it answers in time.
 * What is claimed of an endpoint and sent to it at once begins at one, doubles with every success
 * up to the most in flight, then grows by one, and is one again after a failure or a slow send.
 */
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import { originOf } from '../../kernel/http/origin.ts';
import type { WebhookSettings } from '../settings.ts';
import { isSuccess } from './attempt-result.ts';
import type { AttemptResponse } from './http/attempt.ts';
import { inFlightMax, shareByGroup } from './limits.ts';
import type { Job } from './queue.ts';

type Pool = 'quick' | 'slow';
type Count = Record<Pool, number>;

interface ReadyEndpoint {
  endpointId: string;
  url: string;
  maxInFlight: number | null;
  consecutiveFailures: number;
}

/** How many deliveries of an endpoint may be claimed, and the slots that they use. */
export interface Capacity {
  endpointId: string;
  n: number;
  origin: string;
  pool: Pool;
}

/** The claimed deliveries of one endpoint in this daemon. */
interface EndpointQueue {
  fresh: Job[];
  retries: Job[];
  sending: number;
  /** When deliveries were last accepted. */
  acceptedAt: Instant;
  /** Whether the last send that ended did not deliver. */
  hasFailed: boolean;
  origin: string;
  /** The slots that its next send uses: slow when its last one was, or failed before the start. */
  pool: Pool;
  /** Sends in flight as its health allows, and claims as it has kept up. */
  inFlightMax: number;
  ramp: number;
}

interface SenderDeps {
  clock: Clock;
  settings: WebhookSettings;
  daemons: () => number;
  /** Never rejects. */
  send: (job: Job, startedAt: Instant) => Promise<AttemptResponse>;
  onSent: (job: Job, startedAt: Instant, response: AttemptResponse) => void;
  /** Releases claims that are not sent. */
  release: (jobs: Job[]) => void;
  /** Called when a send has ended or a slot is free. */
  onProgress: () => void;
}

export class Sender {
  private readonly deps: SenderDeps;
  private readonly queues = new Map<string, EndpointQueue>();
  /** Queues with waiting deliveries; the one that sent last is the last. */
  private readonly waiting = new Set<EndpointQueue>();
  private readonly listeners: (() => void)[] = [];
  private readonly slots: Slots;
  /** Slow queues with a send in flight; they share the slow slots. */
  private readonly slowQueues = new Set<EndpointQueue>();
  private retrying = 0;

  constructor(deps: SenderDeps) {
    this.deps = deps;
    const { concurrency, slowConcurrency, connectionsPerOrigin } = deps.settings;
    this.slots = new Slots({ quick: concurrency, slow: slowConcurrency }, connectionsPerOrigin);
  }

  /** Claimed deliveries, waiting or in flight. */
  get claimed(): number {
    return this.slots.waiting + this.sending;
  }
  get sending(): number {
    return this.slots.used;
  }

  capacity(): number {
    return Math.max(0, this.deps.settings.claimMax - this.slots.waiting);
  }

  /**
   * How many deliveries of each endpoint may be claimed. What waits for slow slots or for an origin
   * that has none is not claimed, because it would take the room of other endpoints.
   * @param beside what the same claim takes of other endpoints
   */
  capacities(endpoints: readonly ReadyEndpoint[], beside: readonly Capacity[] = []): Capacity[] {
    const capacities = endpoints.map((endpoint) => {
      const { endpointId, url, consecutiveFailures } = endpoint;
      const queue = this.queues.get(endpointId);
      const { origin, pool } = queue ?? {
        origin: originOf(url),
        pool: firstPool(consecutiveFailures),
      };
      const n = queue ? this.capacityOf(queue, endpoint) : 1;
      return { endpointId, n, origin, pool };
    });
    return this.slots.limit(capacities, beside);
  }

  private capacityOf(queue: EndpointQueue, endpoint: ReadyEndpoint): number {
    const inFlight = Math.min(this.inFlightMaxOf(endpoint), this.limitOf(queue));
    const keepsUp = queue.pool === 'quick' && endpoint.consecutiveFailures === 0;
    const window = keepsUp ? Math.max(inFlight, queue.ramp) : inFlight;
    const claimed = queue.sending + waitingIn(queue);
    // Keeps claims in groups: a wide window is refilled once half of it is free, or no send waits.
    if (claimed >= inFlight && claimed * 2 > window) return 0;
    return Math.max(0, window - claimed);
  }

  /**
   * The endpoints from which deliveries were accepted since, without those that failed last: most
   * of these rest, and to examine hundreds of them took most of the time of a claim.
   */
  servedSince(since: Instant): { endpointId: string }[] {
    const queues = [...this.queues].filter(([, { acceptedAt, hasFailed }]) => {
      return acceptedAt >= since && !hasFailed;
    });
    return queues.map(([endpointId]) => ({ endpointId }));
  }

  accept(jobs: readonly Job[]): void {
    const now = this.deps.clock.now();
    // The jobs of a claim share their endpoints.
    const origins = new Map<Job['endpoint'], string>();
    for (const job of jobs) {
      const { endpoint } = job;
      const queue = this.queueOf(job.delivery.endpointId, firstPool(endpoint.consecutiveFailures));
      const origin = origins.get(endpoint) ?? originOf(endpoint.url);
      origins.set(endpoint, origin);
      if (origin !== queue.origin) this.releaseQueue(queue);
      queue.origin = origin;
      queue.acceptedAt = now;
      queue.inFlightMax = this.inFlightMaxOf(endpoint);
      (isRetry(job) ? queue.retries : queue.fresh).push(job);
      this.slots.wait(origin, 1);
      this.waiting.add(queue);
    }
    this.startSends();
  }

  /** Resolves at the next ended send or free slot, or after `ms`. */
  progress(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = after(ms, resolve);
      this.listeners.push(() => {
        cancel();
        resolve();
      });
    });
  }

  releaseWaiting(): void {
    for (const queue of this.queues.values()) this.releaseQueue(queue);
    this.notify();
  }

  private inFlightMaxOf({
    maxInFlight,
    consecutiveFailures,
  }: Pick<ReadyEndpoint, 'maxInFlight' | 'consecutiveFailures'>): number {
    const { inFlightPerEndpoint } = this.deps.settings;
    const cap = Math.min(maxInFlight ?? inFlightPerEndpoint, inFlightPerEndpoint);
    return inFlightMax(cap, consecutiveFailures, this.deps.daemons());
  }

  private limitOf({ pool, inFlightMax, ramp }: EndpointQueue): number {
    const limit = Math.min(inFlightMax, ramp);
    if (pool === 'quick') return limit;
    const share = Math.floor(this.deps.settings.slowConcurrency / (this.slowQueues.size || 1));
    return Math.max(1, Math.min(limit, share));
  }

  private queueOf(endpointId: string, pool: Pool): EndpointQueue {
    const known = this.queues.get(endpointId);
    if (known) return known;
    if (this.queues.size >= this.deps.settings.endpointsMax) this.evictIdle();
    const queue: EndpointQueue = {
      fresh: [],
      retries: [],
      sending: 0,
      acceptedAt: 0,
      hasFailed: false,
      origin: '',
      pool,
      inFlightMax: 1,
      ramp: 1,
    };
    this.queues.set(endpointId, queue);
    return queue;
  }

  private evictIdle(): void {
    for (const [id, queue] of this.queues)
      if (queue.sending + waitingIn(queue) === 0) this.queues.delete(id);
  }

  /** Starts a send of each waiting queue in turn, until no further one may start. */
  private startSends(): void {
    // A queue that is added again while the set is iterated is visited again, after the others.
    for (const queue of this.waiting) {
      if (this.slots.free('quick') <= 0 && this.slots.free('slow') <= 0) return;
      const job = this.maySend(queue) ? this.nextJob(queue) : undefined;
      if (!job) continue;
      this.waiting.delete(queue);
      this.start(queue, job);
      if (waitingIn(queue) > 0) this.waiting.add(queue);
    }
  }

  private maySend(queue: EndpointQueue): boolean {
    const { origin, pool } = queue;
    const hasSlot = this.slots.free(pool) > 0 && this.slots.freeOf(origin, pool) > 0;
    return hasSlot && queue.sending < this.limitOf(queue);
  }

  private nextJob(queue: EndpointQueue): Job | undefined {
    const { concurrency, retryShare } = this.deps.settings;
    const retryMax = Math.max(1, Math.floor(concurrency * retryShare));
    const hasRetrySlot = queue.pool === 'slow' || this.retrying < retryMax;
    const mayRetry = queue.retries.length > 0 && hasRetrySlot;
    const job = mayRetry ? queue.retries.shift() : queue.fresh.shift();
    if (job) this.slots.wait(queue.origin, -1);
    return job;
  }

  private start(queue: EndpointQueue, job: Job): void {
    const { clock, settings, send, onSent, release } = this.deps;
    const startedAt = clock.now();
    // The lease must outlast the send and the storing of its result.
    const neededMs = settings.send.deadlineMs + settings.leaseMarginMs / 2;
    if (job.leaseUntil - startedAt < neededMs) {
      release([job]);
      return;
    }
    const { origin } = queue;
    let { pool } = queue;
    let isQuick = true;
    queue.sending++;
    this.occupySlot(job, pool, origin, 1);
    if (pool === 'slow') this.slowQueues.add(queue);
    const cancel = after(settings.slowAfterMs, () => {
      isQuick = false;
      this.occupySlot(job, pool, origin, -1);
      pool = 'slow';
      this.occupySlot(job, pool, origin, 1);
      this.becomeSlow(queue);
      this.notify();
    });
    send(job, startedAt).then((response) => {
      cancel();
      this.occupySlot(job, pool, origin, -1);
      queue.sending--;
      if (isQuick) queue.pool = 'quick';
      if (isQuick || queue.sending === 0) this.slowQueues.delete(queue);
      queue.hasFailed = !isSuccess(response);
      if (queue.hasFailed) this.degrade(queue);
      else queue.ramp = this.grown(queue.ramp);
      onSent(job, startedAt, response);
      this.notify();
    });
  }

  private grown(ramp: number): number {
    const { inFlightPerEndpoint, claimPerEndpointMax } = this.deps.settings;
    if (ramp < inFlightPerEndpoint) return Math.min(ramp * 2, inFlightPerEndpoint);
    return Math.max(ramp, Math.min(ramp + 1, claimPerEndpointMax));
  }

  private becomeSlow(queue: EndpointQueue): void {
    this.slowQueues.add(queue);
    if (queue.pool === 'slow') return;
    queue.pool = 'slow';
    this.degrade(queue);
  }

  /** After a failure the endpoint's health is read again before more is sent to it. */
  private degrade(queue: EndpointQueue): void {
    queue.ramp = 1;
    this.releaseQueue(queue);
  }

  private occupySlot(job: Job, pool: Pool, origin: string, by: 1 | -1): void {
    this.slots.occupy(pool, origin, by);
    if (pool === 'quick' && isRetry(job)) this.retrying += by;
  }

  private releaseQueue(queue: EndpointQueue): void {
    const jobs = [...queue.fresh.splice(0), ...queue.retries.splice(0)];
    this.slots.wait(queue.origin, -jobs.length);
    this.waiting.delete(queue);
    if (jobs.length > 0) this.deps.release(jobs);
  }

  private notify(): void {
    this.startSends();
    for (const listener of this.listeners.splice(0)) listener();
    this.deps.onProgress();
  }
}

/**
 * The slots of an endpoint's first send in this daemon. A failing one may hang, and after a start
 * all such endpoints together would fill the quick slots.
 */
function firstPool(consecutiveFailures: number): Pool {
  return consecutiveFailures > 0 ? 'slow' : 'quick';
}

function isRetry(job: Job): boolean {
  return job.delivery.attempts > 0;
}

function waitingIn(queue: EndpointQueue): number {
  return queue.fresh.length + queue.retries.length;
}

/**
 * The slots of sends, and the claimed deliveries that wait for one. Endpoints whose last send was
 * slow share one pool, all others another, so a full pool of slow sends holds back only endpoints
 * known to be slow. Each origin has a part of both pools and of the waiting deliveries, so its
 * hanging endpoints leave room for its healthy ones and for other origins.
 */
class Slots {
  private readonly all: Count = { quick: 0, slow: 0 };
  private readonly byOrigin = new Map<string, Count>();
  private readonly waitingByOrigin = new Map<string, number>();
  private readonly max: Count;
  private readonly perOrigin: number;

  /** Claimed deliveries that wait. */
  waiting = 0;

  /** @param perOrigin of each pool, and of the waiting deliveries */
  constructor(max: Count, perOrigin: number) {
    this.max = max;
    this.perOrigin = perOrigin;
  }

  get used(): number {
    return this.all.quick + this.all.slow;
  }

  /** Free slots of a pool; at most 0 when it is full. */
  free(pool: Pool): number {
    return this.max[pool] - this.all[pool];
  }

  /** Free slots of an origin, whether or not the pool is full. */
  freeOf(origin: string, pool: Pool): number {
    return this.perOrigin - (this.byOrigin.get(origin)?.[pool] ?? 0);
  }

  /**
   * How many more deliveries of an origin may be claimed for this pool. Slow ones do not wait for a
   * slot, and quick ones are claimed in groups: once half of the waiting ones have left.
   */
  private roomOf(origin: string, pool: Pool): number {
    const free = this.freeOf(origin, pool);
    if (free <= 0 || pool === 'slow') return Math.max(0, free);
    const waiting = this.waitingByOrigin.get(origin) ?? 0;
    return waiting * 2 > this.perOrigin ? 0 : this.perOrigin - waiting;
  }

  /** The capacities for claims, limited to the room of each origin and to the free slow slots. */
  limit(capacities: readonly Capacity[], beside: readonly Capacity[]): Capacity[] {
    const ofOrigins = shareByGroup(
      capacities,
      ({ pool, origin }) => `${pool} ${origin}`,
      ({ pool, origin }) => this.roomOf(origin, pool),
      beside,
    );
    return shareByGroup(
      ofOrigins,
      ({ pool }) => pool,
      ({ pool }) => (pool === 'slow' ? this.free(pool) : Number.POSITIVE_INFINITY),
      beside,
    );
  }

  wait(origin: string, by: number): void {
    this.waiting += by;
    const waiting = (this.waitingByOrigin.get(origin) ?? 0) + by;
    if (waiting === 0) this.waitingByOrigin.delete(origin);
    else this.waitingByOrigin.set(origin, waiting);
  }

  occupy(pool: Pool, origin: string, by: 1 | -1): void {
    const count = this.byOrigin.get(origin) ?? { quick: 0, slow: 0 };
    this.byOrigin.set(origin, count);
    count[pool] += by;
    this.all[pool] += by;
    if (count.quick + count.slow === 0) this.byOrigin.delete(origin);
  }
}
