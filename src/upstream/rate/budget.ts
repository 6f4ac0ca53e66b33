/**
 * The one gate that every look passes: paced by the learned rate, bounded in number, silent while
 * the service asked for silence. App traffic never waits here; it is only counted.
 *
 * Every wait has a deadline and a signal, the queue has a bound, and `close` ends all of it.
 */
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import type { Priority, TrafficClass } from '../types.ts';
import { makeTurns } from './priority-queue.ts';
import type { Quota } from './quota.ts';
import { makePace } from './token-bucket.ts';

export interface BudgetSettings {
  concurrencyMax: number;
  /** What steady looks keep of all looks, and looks keep of the rate; 0 to 1. */
  steadyShare: number;
  waitingMax: number;
  waitMs: number;
}

/** What the budget for looks has to say to whoever plans them. */
export interface BudgetView {
  /** How many looks may start at this instant without waiting: 0, 1 or 2. */
  free(): number;
  /** When the next look may start at the earliest; in the past or present when one may now. */
  nextAt(): Instant;
  /** Looks per second that this daemon may make in the long run, app traffic subtracted. */
  ratePerS(): number;
  /** Looks that wait. */
  waiting(): number;
  /** Requests per second that the control allows all daemons together. */
  learnedPerS(): number;
}

export interface Budget extends BudgetView {
  /**
   * Waits for a turn. The answer must be called when the look has ended. Undefined when there is
   * no turn in time: the wait is too long, the queue is full, the signal aborted, a deadline of the
   * service stands, or the budget is closed. Never rejects.
   */
  take(priority: Priority, signal?: AbortSignal): Promise<(() => void) | undefined>;
  /** Counts a second request of a look that already has its turn, or one of app traffic. */
  charge(): void;
  /** Learns from a throttling; resolves when that is kept. */
  throttled(cls: TrafficClass, retryAt: Instant | undefined): Promise<void>;
  /** Keeps looks silent without learning anything; resolves when that is kept. */
  silence(until: Instant): Promise<void>;
  /** Takes over what the quota holds now. */
  follow(): void;
  /** Learns from an answer to a look. */
  succeeded(): void;
  /** Divides the rate among that many daemons. */
  shareAmong(daemons: number): void;
  close(): void;
}

interface Waiter {
  settle: (turn: (() => void) | undefined) => void;
}

/** @param onRate told whenever the learned rate changes, in requests per second of all daemons */
export function makeBudget(
  quota: Quota,
  clock: Clock,
  settings: BudgetSettings,
  onRate: (perS: number) => void,
): Budget {
  return new ReadBudget(quota, clock, settings, onRate);
}

class ReadBudget implements Budget {
  readonly #quota: Quota;
  readonly #clock: Clock;
  readonly #settings: BudgetSettings;
  readonly #onRate: (perS: number) => void;
  readonly #pace;
  readonly #turns;
  #open = 0;
  #daemons = 1;
  #closed = false;
  #disarm: () => void = () => {};

  constructor(
    quota: Quota,
    clock: Clock,
    settings: BudgetSettings,
    onRate: (perS: number) => void,
  ) {
    this.#quota = quota;
    this.#clock = clock;
    this.#settings = settings;
    this.#onRate = onRate;
    this.#pace = makePace(quota.rate(), settings.steadyShare, clock.now());
    this.#turns = makeTurns<Waiter>(settings.steadyShare, settings.waitingMax);
    onRate(quota.rate());
  }

  free(): number {
    return this.#turns.size() > 0 ? 0 : this.#available();
  }

  nextAt(): Instant {
    return Math.max(this.#pace.nextAt(this.#clock.now()), this.#quota.blockedUntil('polls') ?? 0);
  }

  ratePerS(): number {
    const mine = this.#quota.rate() / this.#daemons;
    const { app } = this.#pace.measured(this.#clock.now());
    return Math.max(mine - app, mine * this.#settings.steadyShare);
  }

  waiting(): number {
    return this.#turns.size();
  }

  learnedPerS(): number {
    return this.#quota.rate();
  }

  take(priority: Priority, signal?: AbortSignal): Promise<(() => void) | undefined> {
    if (signal?.aborted || this.#isShut()) return Promise.resolve(undefined);
    if (this.free() > 0) return Promise.resolve(this.#grant());
    return new Promise((resolve) => {
      const giveUp = () => {
        this.#turns.remove(priority, waiter);
        waiter.settle(undefined);
      };
      const stop = after(this.#settings.waitMs, giveUp);
      const waiter: Waiter = {
        settle: (turn) => {
          stop();
          signal?.removeEventListener('abort', giveUp);
          resolve(turn);
        },
      };
      if (!this.#turns.add(priority, waiter)) return waiter.settle(undefined);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#pump();
    });
  }

  charge(): void {
    this.#pace.charge(this.#clock.now());
  }

  async throttled(cls: TrafficClass, retryAt: Instant | undefined): Promise<void> {
    const kept = this.#quota.throttled(cls, retryAt, this.#measured());
    this.follow();
    await kept;
  }

  async silence(until: Instant): Promise<void> {
    const kept = this.#quota.silence(until);
    this.#pump();
    await kept;
  }

  succeeded(): void {
    this.#quota.succeeded(this.#measured());
    this.follow();
  }

  shareAmong(daemons: number): void {
    this.#daemons = Math.max(1, daemons);
    this.follow();
  }

  follow(): void {
    this.#pace.setRate(this.#quota.rate() / this.#daemons, this.#clock.now());
    this.#onRate(this.#quota.rate());
    this.#pump();
  }

  close(): void {
    this.#closed = true;
    this.#pump();
  }

  /** Lets all go whose turn has come, sends all away when there is none to come, and sleeps. */
  #pump(): void {
    this.#disarm();
    if (this.#isShut()) {
      for (const waiter of this.#turns.drain()) waiter.settle(undefined);
      return;
    }
    while (this.#turns.size() > 0 && this.#available() > 0)
      this.#turns.next()?.settle(this.#grant());
    // When all places are taken, the one that is left next pumps.
    if (this.#turns.size() === 0 || this.#open >= this.#settings.concurrencyMax) return;
    const wait = Math.max(1, Math.ceil(this.nextAt() - this.#clock.now()));
    this.#disarm = after(wait, () => this.#pump());
  }

  #grant(): () => void {
    this.#pace.take(this.#clock.now());
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
    if (this.#isShut()) return 0;
    const places = this.#settings.concurrencyMax - this.#open;
    return Math.max(0, Math.min(places, this.#pace.free(this.#clock.now())));
  }

  #isShut(): boolean {
    return this.#closed || this.#quota.blockedUntil('polls') !== undefined;
  }

  #measured(): number {
    return this.#pace.measured(this.#clock.now()).all * this.#daemons;
  }
}
