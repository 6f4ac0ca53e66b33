/**
 * The sends under way in this daemon. It takes claimed deliveries, sends them in turn, one endpoint
 * after the other, and hands each answer on; nobody waits for it. Bounded by the endpoint's cap, by
 * a cap on quick sends and by one on slow ones: a send that takes long moves out of the quick
 * slots, so that endpoints that hang fill their own room and nobody else's. Retries have a part of
 * the slots and never all of them.
 */
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import type { WebhookSettings } from '../settings.ts';
import type { Sent } from './attempt.ts';
import { inFlightMax, nextWindow } from './limits.ts';
import type { Claimed, ClaimedEndpoint } from './store.ts';
import { isSuccess } from './verdict.ts';

/** A claimed delivery with its endpoint as it was at the claim. */
export interface Job {
  claimed: Claimed;
  endpoint: ClaimedEndpoint;
  leaseUntil: Instant;
}

export interface SenderDeps {
  clock: Clock;
  settings: WebhookSettings;
  /** Daemons that share the endpoints. */
  daemons: () => number;
  /** Never rejects. */
  send: (job: Job, startedAt: Instant) => Promise<Sent>;
  done: (job: Job, startedAt: Instant, sent: Sent) => void;
  /** For claims that go back unsent. */
  unsent: (jobs: Job[]) => void;
  /** Called whenever a send has ended or a slot is free again. */
  moved: () => void;
}

/** What is held for one endpoint. */
interface Lane {
  fresh: Job[];
  retries: Job[];
  sending: number;
  inFlight: number;
  /** How much may be held, and what happened since it was last filled. */
  window: number;
  finished: number;
  troubled: boolean;
  /** Whether it stands in the ring of those that may send. */
  inRing: boolean;
}

export class Sender {
  private readonly given: SenderDeps;
  private readonly lanes = new Map<string, Lane>();
  private readonly ring: Lane[] = [];
  /** Lanes with nothing but retries, while these have no slot. */
  private readonly stalled: Lane[] = [];
  private readonly listeners: (() => void)[] = [];
  private waiting = 0;
  private quick = 0;
  private slow = 0;
  private retrying = 0;

  constructor(given: SenderDeps) {
    this.given = given;
  }

  /** Deliveries held, and how many of them are on the wire. */
  get held(): number {
    return this.waiting + this.sending;
  }
  get sending(): number {
    return this.quick + this.slow;
  }

  /** How many more deliveries may be handed over. */
  room(): number {
    return Math.max(0, this.given.settings.claimMax - this.waiting);
  }

  /** How many more of this endpoint may be claimed, given its failures in a row. */
  roomFor(endpointId: string, consecutiveFailures: number): number {
    const allowed = this.inFlightFor(consecutiveFailures);
    const lane = this.lanes.get(endpointId);
    if (!lane) return allowed;
    const window = this.windowOf(lane, allowed, consecutiveFailures > 0);
    const held = lane.sending + waitingIn(lane);
    // Claims are made in groups: not before half of a wide window is free again.
    if (window > allowed && held * 2 > window) return 0;
    return Math.max(0, window - held);
  }

  /** Takes claims over and starts what may start. */
  take(jobs: readonly Job[]): void {
    const filled = new Set<Lane>();
    for (const job of jobs) {
      const { consecutiveFailures } = job.endpoint;
      const lane = this.laneOf(job.claimed.endpointId);
      lane.inFlight = this.inFlightFor(consecutiveFailures);
      lane.troubled ||= consecutiveFailures > 0;
      (isRetry(job) ? lane.retries : lane.fresh).push(job);
      filled.add(lane);
    }
    this.waiting += jobs.length;
    for (const lane of filled) {
      lane.window = this.windowOf(lane, lane.inFlight, false);
      lane.finished = 0;
      lane.troubled = false;
      this.enter(lane);
    }
    this.pump();
  }

  /** Resolves at the next finished send or freed slot, at the latest after `ms`. */
  progress(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = after(ms, resolve);
      this.listeners.push(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Gives back everything that waits. */
  giveBack(): void {
    for (const lane of this.lanes.values()) this.giveBackLane(lane);
    this.moved();
  }

  private inFlightFor(consecutiveFailures: number): number {
    const cap = this.given.settings.inFlightPerEndpoint;
    return inFlightMax(cap, consecutiveFailures, this.given.daemons());
  }

  private windowOf(lane: Lane, inFlight: number, troubled: boolean): number {
    const most = Math.max(inFlight, this.given.settings.claimPerEndpointMax);
    return nextWindow({ ...lane, troubled: troubled || lane.troubled }, inFlight, most);
  }

  private laneOf(endpointId: string): Lane {
    const known = this.lanes.get(endpointId);
    if (known) return known;
    const { inFlightPerEndpoint: window, endpointsMax } = this.given.settings;
    if (this.lanes.size >= endpointsMax) this.forgetQuiet();
    const flow = { sending: 0, inFlight: 1, window, finished: 0, troubled: false, inRing: false };
    const lane: Lane = { fresh: [], retries: [], ...flow };
    this.lanes.set(endpointId, lane);
    return lane;
  }

  private forgetQuiet(): void {
    for (const [id, lane] of this.lanes)
      if (lane.sending + waitingIn(lane) === 0) this.lanes.delete(id);
  }

  private enter(lane: Lane): void {
    if (lane.inRing || waitingIn(lane) === 0 || lane.sending >= lane.inFlight) return;
    lane.inRing = true;
    this.ring.push(lane);
  }

  private pump(): void {
    const { concurrency, slowConcurrency } = this.given.settings;
    while (this.quick < concurrency && this.slow < slowConcurrency) {
      const lane = this.ring.shift();
      if (!lane) return;
      lane.inRing = false;
      const job = lane.sending < lane.inFlight ? this.next(lane) : undefined;
      if (job) {
        this.start(lane, job);
        this.enter(lane);
      } else if (lane.sending < lane.inFlight && lane.retries.length > 0) this.stalled.push(lane);
    }
  }

  private next(lane: Lane): Job | undefined {
    const { concurrency, retryShare } = this.given.settings;
    const retryMax = Math.max(1, Math.floor(concurrency * retryShare));
    const job =
      lane.retries.length > 0 && this.retrying < retryMax
        ? lane.retries.shift()
        : lane.fresh.shift();
    if (job) this.waiting--;
    return job;
  }

  private start(lane: Lane, job: Job): void {
    const { clock, settings, send, done, unsent } = this.given;
    const startedAt = clock.now();
    // A send must end, and be settled, while its claim still holds.
    const needsMs = settings.send.deadlineMs + settings.leaseMarginMs / 2;
    if (job.leaseUntil - startedAt < needsMs) {
      unsent([job]);
      return;
    }
    let isSlow = false;
    lane.sending++;
    this.occupy(job, 1);
    const cancel = after(settings.slowAfterMs, () => {
      isSlow = true;
      this.occupy(job, -1);
      this.slow++;
      lane.troubled = true;
      this.giveBackLane(lane);
      this.moved();
    });
    send(job, startedAt).then((sent) => {
      cancel();
      if (isSlow) this.slow--;
      else this.occupy(job, -1);
      lane.sending--;
      lane.finished++;
      if (sent.error !== null || !isSuccess(sent.status)) this.trouble(lane);
      this.enter(lane);
      done(job, startedAt, sent);
      this.moved();
    });
  }

  /** After a failure the endpoint is judged anew before any more goes to it. */
  private trouble(lane: Lane): void {
    lane.troubled = true;
    lane.inFlight = 1;
    this.giveBackLane(lane);
  }

  private occupy(job: Job, by: 1 | -1): void {
    this.quick += by;
    if (isRetry(job)) this.retrying += by;
  }

  private giveBackLane(lane: Lane): void {
    const jobs = [...lane.fresh.splice(0), ...lane.retries.splice(0)];
    this.waiting -= jobs.length;
    if (jobs.length > 0) this.given.unsent(jobs);
  }

  private moved(): void {
    for (const lane of this.stalled.splice(0)) this.enter(lane);
    this.pump();
    for (const tell of this.listeners.splice(0)) tell();
    this.given.moved();
  }
}

function isRetry(job: Job): boolean {
  return job.claimed.attempts > 0;
}

function waitingIn(lane: Lane): number {
  return lane.fresh.length + lane.retries.length;
}
