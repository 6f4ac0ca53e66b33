/**
 * Simulates polls by the rules of src/observer/schedule on a virtual clock, in seconds. Targets
 * change as Poisson processes of skewed rates, and operations arrive that show after a while. A
 * budget of polls goes to operations that are due, then to the target that is latest in proportion
 * to its interval, as the observer claims them.
 */
import type { Random } from '../../../src/kernel/random.ts';
import {
  type ChangeRate,
  changesPerS,
  learnRate,
  PRIOR,
} from '../../../src/observer/schedule/change-rate.ts';
import {
  expectedWaits,
  learnWait,
  pendingGapS,
  type Waits,
} from '../../../src/observer/schedule/hazard.ts';
import {
  PENDING_WEIGHT,
  priceOf,
  type RateClass,
  steadyIntervalMs,
  withJitter,
} from '../../../src/observer/schedule/price.ts';
import { URGENT_SPAN_MS } from '../../../src/upstream/rate/budget.ts';
import { makeMeter } from '../../../src/upstream/rate/token-bucket.ts';
import { seededRandom } from '../../harness/seeded-random.ts';

/**
 * `known`: targets by their true rates. `learned`: by what polls have shown. `uniform`: everything
 * in turn. `back-off`: targets in turn, operations after 1, 2, 4 and so on to 32 seconds. `known`
 * and `learned` poll operations by a learned hazard.
 */
export type Policy = 'known' | 'learned' | 'uniform' | 'back-off';

export interface Scenario {
  seed: number;
  targets: number;
  perS: number;
  /** Operations per second; none if left out. */
  operationsPerS?: number;
  /** Changes count from then on. */
  warmUpS: number;
  endS: number;
}

const BOUNDS = { minMs: 500, maxMs: 900_000 };
/** How often the observer prices polls again. */
const PRICE_S = 5;
/** The share of the budget that targets keep. */
const STEADY_SHARE = 0.2;
/** Operations show after a log-normal time. */
const SHOWS = { medianS: 20, sigma: 0.6 };

interface Target {
  /** Its changes per second. */
  rate: number;
  /** When it changes next. */
  changesAt: number;
  polledAt: number;
  dueAt: number;
  learned: ChangeRate;
}

interface Pending {
  startedAt: number;
  showsAt: number;
  polledAt: number;
  dueAt: number;
  polls: number;
}

/** The mean delay from a change to the poll that shows it, and the least that is possible. */
export function simulate(policy: Policy, scenario: Scenario): { delayS: number; boundS: number } {
  const { seed, perS, warmUpS, endS, operationsPerS = 0 } = scenario;
  // Equal changes for all policies.
  const [changes, jitter] = [seededRandom(seed), seededRandom(seed + 1)];
  const arrivals = seededRandom(seed + 2);
  const targets = Array.from({ length: scenario.targets }, () => newTarget(changes, perS));
  const pending = new Set<Pending>();
  const urgent = makeMeter(0, URGENT_SPAN_MS);
  const sums = { delay: 0, weight: 0 };
  const count = (changedAt: number, now: number, weight: number) => {
    if (changedAt < warmUpS) return;
    sums.delay += weight * (now - changedAt);
    sums.weight += weight;
  };
  let [price, pricedAt, credit] = [0, Number.NEGATIVE_INFINITY, 0];
  let waits: Waits | undefined;
  let arrivesAt = operationsPerS > 0 ? gapOf(arrivals, operationsPerS) : Number.POSITIVE_INFINITY;
  const gapOfPending = ({ startedAt, polls }: Pending, now: number) => {
    if (policy === 'uniform') return (targets.length + pending.size) / perS;
    if (policy === 'back-off') return Math.min(32, 2 ** polls);
    return pendingGapS(expectedWaits(undefined, waits), now - startedAt, price / PENDING_WEIGHT);
  };
  for (let now = 0, tokenAt = 0; now < endS; ) {
    if (now >= pricedAt + PRICE_S) {
      const classes = rateClasses(targets.map((target) => believed(policy, target)));
      const left = Math.max(perS * STEADY_SHARE, perS - urgent.perS(now * 1000));
      [price, pricedAt] = [priceOf(classes, left, BOUNDS), now];
    }
    const target = latest(targets, Math.max(now, tokenAt));
    // With nothing due the budget waits.
    const firstAt = Math.min(target.dueAt, arrivesAt, ...[...pending].map(({ dueAt }) => dueAt));
    now = Math.max(tokenAt, firstAt);
    for (; arrivesAt <= now; arrivesAt += gapOf(arrivals, operationsPerS)) {
      const showsAt = arrivesAt + SHOWS.medianS * Math.exp(SHOWS.sigma * normalOf(arrivals));
      const one = { startedAt: arrivesAt, showsAt, polledAt: arrivesAt, dueAt: 0, polls: 0 };
      pending.add({ ...one, dueAt: arrivesAt + gapOfPending(one, arrivesAt) });
    }
    const due = [...pending].filter(({ dueAt }) => dueAt <= now);
    if (due.length === 0 && target.dueAt > now) continue;
    // As the token bucket: what was not used is kept for one poll.
    tokenAt = Math.max(tokenAt, now - 1 / perS) + 1 / perS;
    credit += STEADY_SHARE;
    const steadyFirst = credit >= 1;
    if (steadyFirst) credit -= 1;
    if (due.length > 0 && !(steadyFirst && target.dueAt <= now)) {
      const operation = firstDue(due);
      urgent.count(now * 1000);
      operation.polls += 1;
      if (operation.showsAt <= now) {
        pending.delete(operation);
        count(operation.showsAt, now, PENDING_WEIGHT);
        const { startedAt, polledAt } = operation;
        const wait = { fromS: polledAt - startedAt, toS: now - startedAt };
        waits = learnWait(waits, { ...wait, expected: expectedWaits(undefined, waits) });
      } else {
        operation.polledAt = now;
        operation.dueAt = now + gapOfPending(operation, now);
      }
      continue;
    }
    for (const at of pollTarget(target, changes, now)) count(at, now, 1);
    const gapMs = steadyIntervalMs(Math.sqrt(believed(policy, target)), price, BOUNDS);
    target.dueAt = now + withJitter(gapMs, jitter) / 1000;
  }
  return { delayS: sums.delay / sums.weight, boundS: boundOf(targets, perS, operationsPerS) };
}

/** Learns from a poll of a target; returns when it changed since the last one. */
function pollTarget(target: Target, random: Random, now: number): number[] {
  const unseen: number[] = [];
  for (; target.changesAt <= now; target.changesAt += gapOf(random, target.rate))
    unseen.push(target.changesAt);
  const gapS = now - target.polledAt;
  target.learned = learnRate(target.learned, gapS, unseen.length > 0);
  target.polledAt = now;
  return unseen;
}

/** Of the targets that are due the latest in proportion to its interval, or the next one. */
function latest(targets: readonly Target[], now: number): Target {
  const late = ({ dueAt, polledAt }: Target) => (now - polledAt) / (dueAt - polledAt);
  const target = targets.reduce((first, other) => (late(other) > late(first) ? other : first));
  return target.dueAt <= now ? target : firstDue(targets);
}

function firstDue<T extends { dueAt: number }>(all: readonly T[]): T {
  return all.reduce((first, other) => (other.dueAt < first.dueAt ? other : first));
}

/**
 * No schedule of that budget has a smaller mean delay, by Cauchy–Schwarz: (Σ√λ + α√w·I)² /
 * (2·B·(Σλ + α·w)), where I is the integral of √(f·S) of the time after which operations show.
 */
function boundOf(targets: readonly Target[], perS: number, operationsPerS: number): number {
  const weight = operationsPerS * PENDING_WEIGHT;
  const shows = operationsPerS * Math.sqrt(PENDING_WEIGHT) * spreadOf(SHOWS);
  const roots = targets.reduce((sum, { rate }) => sum + Math.sqrt(rate), shows);
  const rates = targets.reduce((sum, { rate }) => sum + rate, weight);
  return roots ** 2 / (2 * perS * rates);
}

/** The integral of √(density · survival) of a log-normal time. */
function spreadOf({ medianS, sigma }: { medianS: number; sigma: number }): number {
  const step = 1e-3;
  let [survival, sum] = [1, 0];
  for (let z = -8; z < 8; z += step) {
    const density = Math.exp(-(z ** 2) / 2) / Math.sqrt(2 * Math.PI);
    const seconds = medianS * Math.exp(sigma * z);
    // In terms of t the density is density / (sigma · t), and dt is sigma · t · dz.
    sum += Math.sqrt(Math.max(0, survival) * density * sigma * seconds) * step;
    survival -= density * step;
  }
  return sum;
}

/** Groups targets as the observer does in SQL. */
function rateClasses(rates: readonly number[]): RateClass[] {
  const classes = Map.groupBy(rates, (rate) => Math.floor(Math.log(rate) * 4));
  return [...classes.values()].map((group) => ({
    targets: group.length,
    root: group.reduce((sum, rate) => sum + Math.sqrt(rate), 0) / group.length,
  }));
}

function believed(policy: Policy, { rate, learned }: Target): number {
  if (policy === 'uniform' || policy === 'back-off') return 1;
  return policy === 'known' ? rate : changesPerS(learned);
}

/** Log-normal rates: a median of one change in half an hour, one in a hundred 33 times that. */
function newTarget(random: Random, perS: number): Target {
  const rate = Math.exp(1.5 * normalOf(random)) / 1800;
  const changesAt = gapOf(random, rate);
  const dueAt = random.unit() * perS;
  return { rate, changesAt, polledAt: 0, dueAt, learned: PRIOR };
}

function gapOf(random: Random, rate: number): number {
  return -Math.log(1 - random.unit()) / rate;
}

function normalOf(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.unit())) * Math.cos(2 * Math.PI * random.unit());
}
