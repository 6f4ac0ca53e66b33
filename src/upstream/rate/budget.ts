/**
 * The budget that every poll passes: paced by the token bucket, bounded in concurrency, stopped
 * while a deadline of the service stands. Requests of apps neither wait here nor use it up; those
 * that the service answers are counted, because the ceiling may follow from them.
 */
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import type { Metrics } from '../../kernel/telemetry/metrics.ts';
import type { RateSignal } from '../parse/outcome.ts';
import { makePriorityQueue, type Priority } from './priority-queue.ts';
import type { Quota, RateBounds, TrafficClass } from './quota.ts';
import { makeMeter, makeTokenBucket } from './token-bucket.ts';

interface BudgetDeps {
  quota: Quota;
  clock: Clock;
  metrics: Pick<Metrics, 'pollRate'>;
}

export interface BudgetSettings {
  /** Polls open at once. */
  concurrencyMax: number;
  /** What steady polls keep of all polls; 0 to 1. */
  steadyShare: number;
  /** Polls that may wait for a slot, and for how long. */
  waitingMax: number;
  waitMs: number;
}

/** What the scheduler of polls needs to know. */
export interface BudgetView {
  /** How many polls may start now without waiting. */
  free(): number;
  /** The earliest instant at which the next poll may start; not in the future when one may now. */
  nextAt(): Instant;
  /** Polls per second that each daemon that polls may sustain. */
  ratePerS(): number;
  /** Polls per second that all daemons together have left for steady polls. */
  steadyPerS(): number;
  /** What other polls always leave of that. */
  steadyMinPerS(): number;
  /** Polls that wait for a slot. */
  waiting(): number;
  /** What bounds the polls of all daemons together. */
  bounds(): RateBounds;
  /** Polls of this daemon since its start. */
  requests(): number;
}

/**
 * Urgent polls are averaged over this time. They are few, and the price of a poll follows them:
 * with five seconds it was so noisy that polls were 5 % later.
 */
export const URGENT_SPAN_MS = 60_000;
/** Traffic of apps is averaged over this time: within half a minute the budget follows it. */
const APP_SPAN_MS = 10_000;

interface Waiter {
  priority: Priority;
  settle: (release: (() => void) | undefined) => void;
}

export interface Share {
  pollers: number;
  appPerS: number;
  startsAt?: Instant;
}

export class Budget implements BudgetView {
  readonly #deps: BudgetDeps;
  readonly #settings: BudgetSettings;
  readonly #bucket;
  readonly #queue;
  /** Polls of pending targets and unknown operations. */
  readonly #urgent;
  /** Requests of apps that the service answered without throttling. */
  readonly #app;
  #open = 0;
  #requests = 0;
  #pollers = 1;
  /** Until then the daemons that poll do not know of this one, and use its part. */
  #startsAt: Instant = 0;
  #closed = false;
  #cancelWake: () => void = () => {};

  constructor(deps: BudgetDeps, settings: BudgetSettings) {
    this.#deps = deps;
    this.#settings = settings;
    const { clock } = deps;
    this.#bucket = makeTokenBucket(() => this.ratePerS(), clock.now());
    this.#queue = makePriorityQueue<Waiter>(settings.steadyShare, settings.waitingMax);
    this.#urgent = makeMeter(clock.now(), URGENT_SPAN_MS);
    this.#app = makeMeter(clock.now(), APP_SPAN_MS);
    this.#measure();
  }

  free(): number {
    return this.#queue.size() > 0 ? 0 : this.#available();
  }

  nextAt(): Instant {
    const { clock, quota } = this.#deps;
    const allowedAt = Math.max(this.#startsAt, quota.blockedUntil('polls') ?? 0);
    return Math.max(this.#bucket.nextAt(clock.now()), allowedAt);
  }

  ratePerS(): number {
    return this.#deps.quota.ratePerS() / this.#pollers;
  }

  /** The other daemons are taken to have as much urgent work as this one. */
  steadyPerS(): number {
    const urgent = this.#urgent.perS(this.#deps.clock.now());
    return Math.max(this.steadyMinPerS(), (this.ratePerS() - urgent) * this.#pollers);
  }

  steadyMinPerS(): number {
    return this.ratePerS() * this.#settings.steadyShare * this.#pollers;
  }

  waiting(): number {
    return this.#queue.size();
  }

  bounds(): RateBounds {
    return this.#deps.quota.bounds();
  }

  /** Requests of apps of this daemon per second that the service answers without throttling. */
  appPerS(): number {
    return this.#app.perS(this.#deps.clock.now());
  }

  requests(): number {
    return this.#requests;
  }

  /**
   * Waits for a slot. The caller calls the returned function when the poll has ended. Undefined
   * when no slot comes in time: the wait is too long, the queue is full, the signal aborts, a
   * deadline of the service stands, or the budget is closed. Never rejects.
   */
  acquire(priority: Priority, signal?: AbortSignal): Promise<(() => void) | undefined> {
    if (signal?.aborted || this.#isStopped()) return Promise.resolve(undefined);
    if (this.free() > 0) return Promise.resolve(this.#grant(priority));
    return new Promise((resolve) => {
      const giveUp = () => {
        this.#queue.remove(priority, waiter);
        waiter.settle(undefined);
      };
      const cancel = after(this.#settings.waitMs, giveUp);
      const waiter: Waiter = {
        priority,
        settle: (release) => {
          cancel();
          signal?.removeEventListener('abort', giveUp);
          resolve(release);
        },
      };
      if (!this.#queue.add(priority, waiter)) return waiter.settle(undefined);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#pump();
    });
  }

  /** Counts a second request of a poll that already has its slot. */
  charge(): void {
    this.#requests += 1;
    this.#bucket.take(this.#deps.clock.now());
  }

  /** Applies what a response says about limits. Resolves when its deadline is stored. */
  async record(cls: TrafficClass, signal: RateSignal): Promise<void> {
    const stored = this.#apply(cls, signal);
    this.refresh();
    await stored;
  }

  /**
   * Divides the rate among that many daemons that poll.
   * @param appPerS the sum of `appPerS` over all daemons
   * @param startsAt no poll starts before: then the other daemons have divided it, too
   */
  share({ pollers, appPerS, startsAt = 0 }: Share): void {
    this.#pollers = Math.max(1, pollers);
    this.#startsAt = startsAt;
    this.#deps.quota.setAppTraffic(appPerS);
    this.refresh();
  }

  /** Applies the current quota to those who wait. */
  refresh(): void {
    this.#measure();
    this.#pump();
  }

  close(): void {
    this.#closed = true;
    this.#pump();
  }

  #apply(cls: TrafficClass, signal: RateSignal): Promise<void> | undefined {
    const { quota, clock } = this.#deps;
    if (signal.kind === 'throttled') return quota.throttled(cls, signal.retryAt);
    // App traffic is still forwarded during maintenance: the service's own 503 stands.
    if (signal.kind === 'maintenance' && signal.retryAt !== undefined)
      return quota.stopPolls(signal.retryAt);
    if (signal.kind === 'answered' && cls === 'polls') quota.succeeded();
    if (signal.kind === 'answered' && (cls === 'app-read' || cls === 'app-write'))
      this.#app.count(clock.now());
    return undefined;
  }

  #measure(): void {
    const { pollRate } = this.#deps.metrics;
    const { setting, byApps, learned, effective } = this.bounds();
    const bounds = { setting, by_apps: byApps, learned, effective };
    for (const [bound, perS] of Object.entries(bounds))
      if (perS === null) pollRate.remove({ bound });
      else pollRate.set({ bound }, perS);
  }

  /** Serves those who wait as far as the budget allows, and wakes itself for the next one. */
  #pump(): void {
    this.#cancelWake();
    if (this.#isStopped()) {
      for (const waiter of this.#queue.drain()) waiter.settle(undefined);
      return;
    }
    while (this.#available() > 0) {
      const waiter = this.#queue.next();
      if (!waiter) break;
      waiter.settle(this.#grant(waiter.priority));
    }
    // When all slots are taken, the next release pumps.
    if (this.#queue.size() === 0 || this.#open >= this.#settings.concurrencyMax) return;
    const waitMs = Math.max(1, Math.ceil(this.nextAt() - this.#deps.clock.now()));
    this.#cancelWake = after(waitMs, () => this.#pump());
  }

  #grant(priority: Priority): () => void {
    const now = this.#deps.clock.now();
    this.#bucket.take(now);
    this.#requests += 1;
    if (priority !== 'steady') this.#urgent.count(now);
    this.#open += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#open -= 1;
      this.#pump();
    };
  }

  #available(): number {
    const now = this.#deps.clock.now();
    if (this.#isStopped() || now < this.#startsAt) return 0;
    const slots = this.#settings.concurrencyMax - this.#open;
    return Math.max(0, Math.min(slots, this.#bucket.free(now)));
  }

  #isStopped(): boolean {
    return this.#closed || this.#deps.quota.blockedUntil('polls') !== undefined;
  }
}
