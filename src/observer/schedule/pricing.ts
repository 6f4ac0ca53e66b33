/** The present price of a poll, from the targets and the budget that is left for them. */
import type { Db, Queryable } from '../../db/connect.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import type { Metrics } from '../../kernel/telemetry/metrics.ts';
import type { BudgetView } from '../../upstream/upstream.ts';
import { NEVER } from '../targets.ts';
import {
  type Delay,
  delayOf,
  type IntervalBounds,
  maximumAgeMs,
  type PollIntervals,
  pollsPerS,
  priceOf,
  type RateClass,
} from './price.ts';

export interface Pricing {
  /** In seconds of undetected change, as of price.ts. */
  price: number;
  /** Of the intervals of steady targets; `maxMs` is the guaranteed maximum age. */
  bounds: IntervalBounds;
  /** Polls per second that all daemons have left for steady targets. */
  budgetPerS: number;
  /** Polls of steady targets per second, of all daemons, and the mean interval of a target. */
  perS: number;
  intervalMs: number | null;
  /** By the learned change rates; undefined without targets. */
  delay: Delay | undefined;
  /** When the target polled longest ago was polled; null if none was. Some seconds old. */
  oldestPollAt: Instant | null;
}

interface Deps {
  db: Db;
  clock: Clock;
  budget: BudgetView;
  metrics: Pick<
    Metrics,
    | 'pollPrice'
    | 'pollBudget'
    | 'pollInterval'
    | 'expectedDelay'
    | 'leastDelay'
    | 'maximumAge'
    | 'oldestPoll'
  >;
  settings: PollIntervals & { minGapMs: number };
}

/** Reading all targets may take at most this share of the time. */
const COUNT_SHARE = 0.01;
const COUNT_MIN_MS = 5_000;

/** The targets are counted again at intervals that grow with the time it takes. */
export function makePricing(deps: Deps) {
  const { clock, budget, metrics, settings } = deps;
  const readTargets = cachedTargets(deps);
  const pricing = async (): Promise<Pricing> => {
    const { classes, targets, oldestPollAt } = await readTargets();
    const maxMs = maximumAgeMs(settings, targets, budget.steadyMinPerS());
    const bounds = { minMs: settings.minGapMs, maxMs };
    const budgetPerS = budget.steadyPerS();
    const price = priceOf(classes, budgetPerS, bounds);
    const perS = Math.min(pollsPerS(classes, price, bounds), budgetPerS);
    const intervalMs = perS > 0 ? (targets / perS) * 1000 : null;
    const delay = delayOf(classes, { price, perS, budgetPerS }, bounds);
    metrics.expectedDelay.set((delay?.expectedMs ?? 0) / 1000);
    metrics.leastDelay.set((delay?.leastMs ?? 0) / 1000);
    metrics.pollPrice.set(price);
    metrics.pollBudget.set(budgetPerS);
    metrics.pollInterval.set((intervalMs ?? 0) / 1000);
    metrics.maximumAge.set(maxMs / 1000);
    metrics.oldestPoll.set(Math.max(0, clock.now() - (oldestPollAt ?? clock.now())) / 1000);
    return { price, bounds, budgetPerS, perS, intervalMs, delay, oldestPollAt };
  };
  return Object.assign(pricing, {
    /** The guaranteed maximum age if so many targets are added to those that there are now. */
    async maximumAgeMs(added: number): Promise<number> {
      const { targets } = await readTargets(true);
      return maximumAgeMs(settings, targets + added, budget.steadyMinPerS());
    },
  });
}

function cachedTargets({ db, clock }: Deps) {
  const none = { classes: [] as RateClass[], targets: 0, oldestPollAt: null as Instant | null };
  let read = { ...none, from: 0, until: Number.NEGATIVE_INFINITY };
  let reading: Promise<typeof read> | undefined;
  const readAgain = async (from: Instant) => {
    const classes = await countRateClasses(db);
    const tookMs = clock.now() - from;
    const targets = classes.reduce((sum, one) => sum + one.targets, 0);
    const polled = classes.flatMap((one) => one.oldestPollAt ?? []);
    const oldestPollAt = polled.length > 0 ? Math.min(...polled) : null;
    // Without targets the time is that of a busy machine.
    const restMs = targets === 0 ? 0 : tookMs / COUNT_SHARE;
    const until = from + Math.max(COUNT_MIN_MS, restMs);
    read = { classes, targets, oldestPollAt, from, until };
    return read;
  };
  return async (anew = false) => {
    const now = clock.now();
    if (!anew && now >= read.from && now < read.until) return read;
    // Polls that end together share one reading.
    reading ??= readAgain(now).finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

interface OldestPoll {
  /** When the target polled longest ago was polled; null if none was. */
  oldestPollAt: Instant | null;
}

/** Targets that are polled, by how often they change; a class spans 28 % of that. */
export async function countRateClasses(db: Queryable): Promise<(RateClass & OldestPoll)[]> {
  return db.sql<(RateClass & OldestPoll)[]>`
    select count(*)::int as targets, avg(sqrt(changes / changes_over_s)) as root,
      min(last_started_at) as oldest_poll_at
    from tallyhook.targets
    where kind in ('wallet', 'token', 'contract') and next_poll_at < ${isoText(NEVER)}
      and not idle
    group by floor(ln(changes / changes_over_s) * 4)`;
}
