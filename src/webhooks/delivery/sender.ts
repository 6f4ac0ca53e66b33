/**
 * Sends claimed deliveries, round-robin over the endpoints. Concurrency is limited per endpoint,
 * for quick sends, for slow sends, and for retries. A send that takes longer than `slowAfterMs`
 * frees its quick slot, so endpoints that hang cannot use up the slots of the others.
 */
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import type { WebhookSettings } from '../settings.ts';
import type { AttemptResponse } from './attempt.ts';
import { isSuccess } from './attempt-result.ts';
import { inFlightMax, nextWindow } from './limits.ts';
import type { ClaimedDelivery, ClaimedEndpoint } from './queue-store.ts';

/** A claimed delivery with its endpoint as of the claim. */
export interface Job {
  delivery: ClaimedDelivery;
  endpoint: ClaimedEndpoint;
  leaseUntil: Instant;
}

export interface SenderDeps {
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

interface EndpointQueue {
  fresh: Job[];
  retries: Job[];
  sending: number;
  inFlightMax: number;
  /** The claim window and what happened since the last claim (limits.ts). */
  window: number;
  finished: number;
  degraded: boolean;
  inRing: boolean;
}

export class Sender {
  private readonly deps: SenderDeps;
  private readonly queues = new Map<string, EndpointQueue>();
  /** Queues that may send, in round-robin order. */
  private readonly ring: EndpointQueue[] = [];
  /** Queues with only retries, while no retry slot is free. */
  private readonly stalled: EndpointQueue[] = [];
  private readonly listeners: (() => void)[] = [];
  private waiting = 0;
  private quick = 0;
  private slow = 0;
  private retrying = 0;

  constructor(deps: SenderDeps) {
    this.deps = deps;
  }

  /** Claimed deliveries, waiting or in flight. */
  get claimed(): number {
    return this.waiting + this.sending;
  }
  get sending(): number {
    return this.quick + this.slow;
  }

  capacity(): number {
    return Math.max(0, this.deps.settings.claimMax - this.waiting);
  }

  capacityOf(endpointId: string, consecutiveFailures: number): number {
    const allowed = this.inFlightMaxAfter(consecutiveFailures);
    const queue = this.queues.get(endpointId);
    if (!queue) return allowed;
    const window = this.windowOf(queue, allowed, consecutiveFailures > 0);
    const claimed = queue.sending + waitingIn(queue);
    // Keeps claims in groups: a wide window is refilled once half of it is free.
    if (window > allowed && claimed * 2 > window) return 0;
    return Math.max(0, window - claimed);
  }

  accept(jobs: readonly Job[]): void {
    const filled = new Set<EndpointQueue>();
    for (const job of jobs) {
      const { consecutiveFailures } = job.endpoint;
      const queue = this.queueOf(job.delivery.endpointId);
      queue.inFlightMax = this.inFlightMaxAfter(consecutiveFailures);
      queue.degraded ||= consecutiveFailures > 0;
      (isRetry(job) ? queue.retries : queue.fresh).push(job);
      filled.add(queue);
    }
    this.waiting += jobs.length;
    for (const queue of filled) {
      queue.window = this.windowOf(queue, queue.inFlightMax, false);
      queue.finished = 0;
      queue.degraded = false;
      this.addToRing(queue);
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

  private inFlightMaxAfter(consecutiveFailures: number): number {
    const cap = this.deps.settings.inFlightPerEndpoint;
    return inFlightMax(cap, consecutiveFailures, this.deps.daemons());
  }

  private windowOf(queue: EndpointQueue, inFlight: number, degraded: boolean): number {
    const windowMax = Math.max(inFlight, this.deps.settings.claimPerEndpointMax);
    return nextWindow({ ...queue, degraded: degraded || queue.degraded }, inFlight, windowMax);
  }

  private queueOf(endpointId: string): EndpointQueue {
    const known = this.queues.get(endpointId);
    if (known) return known;
    const { inFlightPerEndpoint: window, endpointsMax } = this.deps.settings;
    if (this.queues.size >= endpointsMax) this.evictIdle();
    const queue: EndpointQueue = {
      ...{ fresh: [], retries: [], sending: 0, inFlightMax: 1 },
      ...{ window, finished: 0, degraded: false, inRing: false },
    };
    this.queues.set(endpointId, queue);
    return queue;
  }

  private evictIdle(): void {
    for (const [id, queue] of this.queues)
      if (queue.sending + waitingIn(queue) === 0) this.queues.delete(id);
  }

  private addToRing(queue: EndpointQueue): void {
    if (queue.inRing || waitingIn(queue) === 0 || queue.sending >= queue.inFlightMax) return;
    queue.inRing = true;
    this.ring.push(queue);
  }

  private startSends(): void {
    const { concurrency, slowConcurrency } = this.deps.settings;
    while (this.quick < concurrency && this.slow < slowConcurrency) {
      const queue = this.ring.shift();
      if (!queue) return;
      queue.inRing = false;
      const hasSlot = queue.sending < queue.inFlightMax;
      const job = hasSlot ? this.nextJob(queue) : undefined;
      if (job) {
        this.start(queue, job);
        this.addToRing(queue);
      } else if (hasSlot && queue.retries.length > 0) this.stalled.push(queue);
    }
  }

  private nextJob(queue: EndpointQueue): Job | undefined {
    const { concurrency, retryShare } = this.deps.settings;
    const retryMax = Math.max(1, Math.floor(concurrency * retryShare));
    const mayRetry = queue.retries.length > 0 && this.retrying < retryMax;
    const job = mayRetry ? queue.retries.shift() : queue.fresh.shift();
    if (job) this.waiting--;
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
    let isSlow = false;
    queue.sending++;
    this.occupySlot(job, 1);
    const cancel = after(settings.slowAfterMs, () => {
      isSlow = true;
      this.occupySlot(job, -1);
      this.slow++;
      queue.degraded = true;
      this.releaseQueue(queue);
      this.notify();
    });
    send(job, startedAt).then((response) => {
      cancel();
      if (isSlow) this.slow--;
      else this.occupySlot(job, -1);
      queue.sending--;
      queue.finished++;
      if (response.error !== null || !isSuccess(response.status)) this.degrade(queue);
      this.addToRing(queue);
      onSent(job, startedAt, response);
      this.notify();
    });
  }

  /** After a failure the endpoint's health is read again before more is sent to it. */
  private degrade(queue: EndpointQueue): void {
    queue.degraded = true;
    queue.inFlightMax = 1;
    this.releaseQueue(queue);
  }

  private occupySlot(job: Job, by: 1 | -1): void {
    this.quick += by;
    if (isRetry(job)) this.retrying += by;
  }

  private releaseQueue(queue: EndpointQueue): void {
    const jobs = [...queue.fresh.splice(0), ...queue.retries.splice(0)];
    this.waiting -= jobs.length;
    if (jobs.length > 0) this.deps.release(jobs);
  }

  private notify(): void {
    for (const queue of this.stalled.splice(0)) this.addToRing(queue);
    this.startSends();
    for (const listener of this.listeners.splice(0)) listener();
    this.deps.onProgress();
  }
}

function isRetry(job: Job): boolean {
  return job.delivery.attempts > 0;
}

function waitingIn(queue: EndpointQueue): number {
  return queue.fresh.length + queue.retries.length;
}
