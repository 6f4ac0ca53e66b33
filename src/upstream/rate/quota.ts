/**
 * What the service told us about asking less: a deadline for each class of traffic, and the learned
 * rate. Kept by a QuotaKeeper, so that a restart does not forget it and daemons share it. A
 * deadline only ever moves later.
 *
 * A deadline that a look draws stops looks; one that app traffic draws stops looks and that class.
 */
import { backoffMs } from '../../kernel/backoff.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Random } from '../../kernel/random.ts';
import { RETRY_AFTER_MAX_MS } from '../../kernel/retry-after.ts';
import type { QuotaKeeper, QuotaState, TrafficClass } from '../types.ts';
import { beginControl, type Control, onSuccess, onThrottle } from './limiter.ts';

export interface Quota {
  blockedUntil(cls: TrafficClass): Instant | undefined;
  /** Requests per second of all daemons together. */
  rate(): number;
  /** A throttling was met. Resolves when it is kept, or when that failed and was logged. */
  throttled(cls: TrafficClass, retryAt: Instant | undefined, measured: number): Promise<void>;
  /** The service wants no looks until then, for another reason than too many. Never rejects. */
  silence(until: Instant): Promise<void>;
  /** A look was answered without throttling. */
  succeeded(measured: number): void;
  /** Takes over what other daemons have kept. @throws what the keeper throws */
  sync(): Promise<void>;
  /** Keeps what was learned. Never rejects. */
  flush(): Promise<void>;
}

export interface QuotaOptions {
  keeper: QuotaKeeper;
  clock: Clock;
  random: Random;
  log: Log;
  ceiling: number;
  startRate: number;
}

/** Without `Retry-After`: thirty seconds, doubled until a look succeeds, an hour at most. */
const SILENCE_BASE_MS = 30_000;
const SILENCE_CAP_MS = 3_600_000;
const SAVE_EVERY_MS = 10_000;

/** @throws what the keeper throws when the quota cannot be loaded */
export async function openQuota(options: QuotaOptions): Promise<Quota> {
  const quota = new KeptQuota(options);
  await quota.sync();
  return quota;
}

class KeptQuota implements Quota {
  readonly #options: QuotaOptions;
  readonly #until = new Map<TrafficClass, Instant>();
  #control: Control;
  #throttlesInARow = 0;
  #savedAt: Instant;
  #savedRate: number;

  constructor(options: QuotaOptions) {
    this.#options = options;
    const now = options.clock.now();
    this.#control = beginControl(undefined, options.startRate, options.ceiling, now);
    this.#savedAt = now;
    this.#savedRate = this.#control.rate;
  }

  blockedUntil(cls: TrafficClass): Instant | undefined {
    const until = this.#until.get(cls);
    return until !== undefined && until > this.#options.clock.now() ? until : undefined;
  }

  rate(): number {
    return this.#control.rate;
  }

  async throttled(cls: TrafficClass, retryAt: Instant | undefined, measured: number) {
    const { clock, random, log } = this.#options;
    const now = clock.now();
    if (retryAt !== undefined && retryAt >= now + RETRY_AFTER_MAX_MS)
      log.warn({ class: cls }, 'the service asked for a silence of a day or more');
    const silence =
      retryAt === undefined
        ? backoffMs(this.#throttlesInARow, SILENCE_BASE_MS, SILENCE_CAP_MS, random)
        : // A little later than asked, so that daemons do not come back at one instant.
          (retryAt - now) * (1 + 0.1 * random.unit());
    this.#throttlesInARow += 1;
    this.#block('polls', now + Math.ceil(silence));
    // Apps get the service's own answer; without a deadline nothing is kept from them.
    if (cls !== 'polls' && retryAt !== undefined) this.#block(cls, retryAt);
    const resumeAt = this.blockedUntil('polls') ?? now;
    // Answers to requests that were open together count as one throttling.
    const again = this.#control.throttledAt !== null && this.#control.throttledAt > now;
    this.#control = again
      ? { ...this.#control, throttledAt: resumeAt, quietSince: resumeAt }
      : onThrottle(this.#control, measured, resumeAt);
    log.info({ class: cls, until: resumeAt, perS: this.#control.rate }, 'throttled');
    await Promise.all([this.#save('polls'), ...(cls === 'polls' ? [] : [this.#save(cls)])]);
  }

  async silence(until: Instant): Promise<void> {
    this.#block('polls', until);
    await this.#save('polls');
  }

  succeeded(measured: number): void {
    const { clock, ceiling } = this.#options;
    const now = clock.now();
    this.#throttlesInARow = 0;
    this.#control = onSuccess(this.#control, measured, ceiling, now);
    if (this.#control.rate !== this.#savedRate && now - this.#savedAt >= SAVE_EVERY_MS)
      void this.#save('polls');
  }

  async sync(): Promise<void> {
    const { keeper, startRate, ceiling, clock } = this.#options;
    for (const kept of await keeper.load()) {
      if (kept.blockedUntil !== null) this.#block(kept.name, kept.blockedUntil);
      if (kept.name !== 'polls') continue;
      const mine = this.#control.throttledAt;
      const newer = kept.throttledAt !== null && kept.throttledAt > (mine ?? 0);
      // Without a throttling between us and the keeper, the faster learner is right.
      if (newer || (kept.throttledAt === mine && kept.rate > this.#control.rate))
        this.#control = beginControl(kept, startRate, ceiling, clock.now());
    }
  }

  async flush(): Promise<void> {
    if (this.#control.rate !== this.#savedRate) await this.#save('polls');
  }

  #block(cls: TrafficClass, until: Instant): void {
    this.#until.set(cls, Math.max(until, this.#until.get(cls) ?? 0));
  }

  async #save(name: TrafficClass): Promise<void> {
    const { keeper, clock, log } = this.#options;
    const { rate, lastMax, throttledAt } = this.#control;
    const blockedUntil = this.#until.get(name) ?? null;
    const state: QuotaState =
      name === 'polls'
        ? { name, blockedUntil, rate, lastMax, throttledAt }
        : { name, blockedUntil, rate: 0, lastMax: null, throttledAt: null };
    this.#savedAt = clock.now();
    this.#savedRate = rate;
    try {
      await keeper.save(state);
    } catch (err) {
      log.warn({ err, class: name }, 'quota not kept');
    }
  }
}
