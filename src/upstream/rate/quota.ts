/**
 * The limits that the service has set: a deadline for each class of traffic, and the rate of polls.
 * A store keeps them, so that they survive a restart and all daemons share them. A deadline only
 * moves later. One received by a poll stops polls; one received by app traffic stops polls and that
 * class.
 */

import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { backoffMs, RETRY_AFTER_MAX_MS } from '../../kernel/retry.ts';
import type { Log } from '../../kernel/telemetry/log.ts';

import {
  ceilingOf,
  FIRST_RISE_MS,
  type RateLimit,
  rateAt,
  slowStart,
  throttle,
} from './limiter.ts';

/**
 * Traffic whose deadlines are kept apart: our own polls, reads of apps, writes of apps, and
 * requests for the managed client token.
 */
export type TrafficClass = 'polls' | 'app-read' | 'app-write' | 'client-token';

/** What survives a restart, one row for each class. */
export interface QuotaState {
  name: TrafficClass;
  /** Until when the service asked this class to send nothing. */
  blockedUntil: Instant | null;
  /**
   * The rate of polls right after the last throttling or outage, in requests per second of all
   * daemons together, the instant from which it rises, and how long it would rise from zero. Null
   * before the first one, and for other traffic.
   */
  rate: number | null;
  risesFrom: Instant | null;
  riseMs: number | null;
  /** When a person last removed the deadlines; those received before it are void. */
  clearedAt: Instant | null;
}

/** Where the quota is stored; another stage owns the table. */
export interface QuotaStore {
  load(): Promise<QuotaState[]>;
  /** Keeps the later deadline, and the later throttling with its rate. */
  save(state: QuotaState): Promise<void>;
  /** Removes the deadlines of all classes, and lets the rate rise from now on. */
  clear(at: Instant): Promise<void>;
}

interface QuotaDeps {
  store: QuotaStore;
  clock: Clock;
  random: Random;
  log: Log;
}

/** Polls per second of all daemons together. */
interface RateSettings {
  /** The operator's bound; null: the traffic of apps decides. */
  setting: number | null;
  /** The rate at the start, until the first throttling. */
  initialRate: number;
}

/** Without `Retry-After`: thirty seconds, doubled until a poll is answered, at most an hour. */
const WAIT_BASE_MS = 30_000;
const WAIT_CAP_MS = 3_600_000;

/** What bounds the polls of all daemons together, per second. */
export interface RateBounds {
  setting: number | null;
  /** What the traffic of apps allows; null with a setting. */
  byApps: number | null;
  /** What throttlings, outages or a recent start leave; null: no less than the others. */
  learned: number | null;
  effective: number;
}

/** Loads the stored quota. @throws what the store throws */
export async function openQuota(deps: QuotaDeps, settings: RateSettings): Promise<Quota> {
  const quota = new Quota(deps, settings);
  await quota.sync();
  return quota;
}

export class Quota {
  readonly #deps: QuotaDeps;
  readonly #setting: number | null;
  #appPerS = 0;
  readonly #blockedUntil = new Map<TrafficClass, Instant>();
  #limit: RateLimit;
  /** True once `#limit` comes from a throttling or an outage. */
  #throttled = false;
  #throttlesInARow = 0;
  /** What could not be stored; `sync` tries again. */
  readonly #unsaved = new Set<TrafficClass>();
  /** When a person last removed the deadlines, as far as this daemon knows. */
  #clearedAt: Instant | null = null;

  constructor(deps: QuotaDeps, { setting, initialRate }: RateSettings) {
    this.#deps = deps;
    this.#setting = setting;
    this.#limit = { rate: initialRate, risesFrom: deps.clock.now(), riseMs: FIRST_RISE_MS };
  }

  blockedUntil(cls: TrafficClass): Instant | undefined {
    const until = this.#blockedUntil.get(cls);
    return until !== undefined && until > this.#deps.clock.now() ? until : undefined;
  }

  /** Polls per second that all daemons together may make now. */
  ratePerS(): number {
    return rateAt(this.#limit, this.#ceiling(), this.#deps.clock.now());
  }

  bounds(): RateBounds {
    const [ceiling, effective] = [this.#ceiling(), this.ratePerS()];
    return {
      setting: this.#setting,
      byApps: this.#setting === null ? ceiling : null,
      learned: effective < ceiling ? effective : null,
      effective,
    };
  }

  /** Requests per second of all apps that the service answers without throttling. */
  setAppTraffic(appPerS: number): void {
    this.#appPerS = appPerS;
  }

  /** Records a throttling. Resolves when it is stored, or when storing it failed and was logged. */
  async throttled(cls: TrafficClass, retryAt: Instant | undefined): Promise<void> {
    const { clock, random, log } = this.#deps;
    const now = clock.now();
    const isNew = this.blockedUntil('polls') === undefined;
    if (isNew && retryAt !== undefined && retryAt >= now + RETRY_AFTER_MAX_MS)
      log.warn({ class: cls }, 'the service set a Retry-After of a day or more');
    const waitMs =
      retryAt === undefined
        ? backoffMs(this.#throttlesInARow, WAIT_BASE_MS, WAIT_CAP_MS, random)
        : // Up to a tenth longer than asked, so that daemons do not resume at the same instant.
          (retryAt - now) * (1 + 0.1 * random.unit());
    this.#throttlesInARow += 1;
    this.#block('polls', now + Math.ceil(waitMs));
    // Without a deadline app traffic goes on: apps get the service's own answer.
    if (cls !== 'polls' && retryAt !== undefined) this.#block(cls, retryAt);
    const resumeAt = this.blockedUntil('polls') ?? now;
    this.#limit = throttle(this.#limit, this.#ceiling(), now, resumeAt);
    this.#throttled = true;
    // Once for an incident, however many requests were under way.
    if (isNew) log.info({ class: cls, until: resumeAt, ratePerS: this.#limit.rate }, 'throttled');
    await Promise.all([this.#save('polls'), ...(cls === 'polls' ? [] : [this.#save(cls)])]);
  }

  /** Stops polls until then without lowering their rate. Resolves like `throttled`. */
  async stopPolls(until: Instant): Promise<void> {
    this.#block('polls', until);
    await this.#save('polls');
  }

  /** The service was down: the rate begins low and rises again. Resolves like `throttled`. */
  async slowStart(): Promise<void> {
    this.#limit = slowStart(this.#limit, this.#ceiling(), this.#deps.clock.now());
    this.#throttled = true;
    await this.#save('polls');
  }

  /** Removes all deadlines, for all daemons, at a person's order. @throws what the store throws */
  async clearDeadlines(): Promise<void> {
    await this.#deps.store.clear(this.#deps.clock.now());
    await this.sync();
  }

  /** A poll was answered without throttling. */
  succeeded(): void {
    this.#throttlesInARow = 0;
  }

  /** Takes over what other daemons have stored. @throws what the store throws */
  async sync(): Promise<void> {
    for (const name of this.#unsaved) await this.#save(name);
    const stored = await this.#deps.store.load();
    this.#forgetCleared(stored);
    for (const { name, blockedUntil, rate, risesFrom, riseMs } of stored) {
      if (blockedUntil !== null) this.#block(name, blockedUntil);
      if (name !== 'polls' || rate === null || risesFrom === null || riseMs === null) continue;
      if (this.#throttled && risesFrom <= this.#limit.risesFrom) continue;
      this.#limit = { rate, risesFrom, riseMs };
      this.#throttled = true;
    }
  }

  #forgetCleared(stored: readonly QuotaState[]): void {
    const cleared = stored.reduce((last, { clearedAt }) => Math.max(last, clearedAt ?? 0), 0);
    if (cleared <= (this.#clearedAt ?? 0)) return;
    this.#clearedAt = cleared;
    this.#blockedUntil.clear();
    this.#limit = { ...this.#limit, risesFrom: Math.min(this.#limit.risesFrom, cleared) };
  }

  #ceiling(): number {
    return ceilingOf(this.#setting, this.#appPerS);
  }

  #block(cls: TrafficClass, until: Instant): void {
    this.#blockedUntil.set(cls, Math.max(until, this.#blockedUntil.get(cls) ?? 0));
  }

  async #save(name: TrafficClass): Promise<void> {
    const { store, log } = this.#deps;
    const learned = name === 'polls' && this.#throttled ? this.#limit : undefined;
    const state: QuotaState = {
      name,
      blockedUntil: this.#blockedUntil.get(name) ?? null,
      rate: learned?.rate ?? null,
      risesFrom: learned?.risesFrom ?? null,
      riseMs: learned?.riseMs ?? null,
      clearedAt: this.#clearedAt,
    };
    try {
      await store.save(state);
      this.#unsaved.delete(name);
    } catch (err) {
      this.#unsaved.add(name);
      log.warn({ err, class: name }, 'the quota could not be stored');
    }
  }
}
