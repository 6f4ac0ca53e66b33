/**
 * Simulates polls by the rules of src/observer/schedule on a virtual clock, in seconds. Targets
 * change as Poisson processes of skewed rates; a budget of polls goes to the target that has been
 * due longest, as the observer claims them.
 */
import type { Random } from '../../../src/kernel/random.ts';
import {
  type ChangeRate,
  changesPerS,
  learnRate,
  PRIOR,
} from '../../../src/observer/schedule/change-rate.ts';
import {
  priceOf,
  type RateClass,
  steadyIntervalMs,
  withJitter,
} from '../../../src/observer/schedule/price.ts';
import { seededRandom } from '../../harness/seeded-random.ts';

/** `known`: by the true rates. `learned`: by what polls have shown. `uniform`: equal intervals. */
export type Policy = 'known' | 'learned' | 'uniform';

export interface Scenario {
  seed: number;
  targets: number;
  perS: number;
  /** Changes count from then on. */
  warmUpS: number;
  endS: number;
}

const BOUNDS = { minMs: 500, maxMs: 900_000 };
/** How often the observer prices polls again. */
const PRICE_S = 5;

interface Target {
  /** Its changes per second. */
  rate: number;
  /** When it changes next, and its changes that no poll has shown. */
  changesAt: number;
  unseen: number[];
  polledAt: number;
  dueAt: number;
  learned: ChangeRate;
}

/** The mean delay from a change to the poll that shows it, and the least that is possible. */
export function simulate(policy: Policy, scenario: Scenario): { delayS: number; boundS: number } {
  const { seed, perS, warmUpS, endS } = scenario;
  // Equal changes for all policies.
  const [changes, jitter] = [seededRandom(seed), seededRandom(seed + 1)];
  const targets = Array.from({ length: scenario.targets }, () => newTarget(changes, perS));
  let [price, pricedAt, delays, shown] = [0, Number.NEGATIVE_INFINITY, 0, 0];
  for (let now = 0; now < endS; now += 1 / perS) {
    if (now >= pricedAt + PRICE_S) {
      const classes = rateClasses(targets.map((target) => believed(policy, target)));
      [price, pricedAt] = [priceOf(classes, perS, BOUNDS), now];
    }
    const target = targets.reduce((first, other) => (other.dueAt < first.dueAt ? other : first));
    // With nothing due the budget waits.
    now = Math.max(now, target.dueAt);
    while (target.changesAt <= now) {
      target.unseen.push(target.changesAt);
      target.changesAt += gapOf(changes, target.rate);
    }
    const counted = target.unseen.filter((at) => at >= warmUpS);
    shown += counted.length;
    delays += counted.reduce((sum, at) => sum + now - at, 0);
    const gapS = now - target.polledAt;
    target.learned = learnRate(target.learned, gapS, target.unseen.length > 0);
    target.unseen = [];
    target.polledAt = now;
    const gapMs = steadyIntervalMs(Math.sqrt(believed(policy, target)), price, BOUNDS);
    target.dueAt = now + withJitter(gapMs, jitter) / 1000;
  }
  return { delayS: delays / shown, boundS: boundOf(targets, perS) };
}

/** Σ(√λ)² / (2·B·Σλ): no schedule of that budget has a smaller mean delay (Cauchy–Schwarz). */
function boundOf(targets: readonly Target[], perS: number): number {
  const roots = targets.reduce((sum, { rate }) => sum + Math.sqrt(rate), 0);
  const rates = targets.reduce((sum, { rate }) => sum + rate, 0);
  return roots ** 2 / (2 * perS * rates);
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
  if (policy === 'uniform') return 1;
  return policy === 'known' ? rate : changesPerS(learned);
}

/** Log-normal rates: a median of one change in half an hour, one in a hundred 33 times that. */
function newTarget(random: Random, perS: number): Target {
  const rate = Math.exp(1.5 * normalOf(random)) / 1800;
  const changesAt = gapOf(random, rate);
  const dueAt = random.unit() * perS;
  return { rate, changesAt, unseen: [], polledAt: 0, dueAt, learned: PRIOR };
}

function gapOf(random: Random, rate: number): number {
  return -Math.log(1 - random.unit()) / rate;
}

function normalOf(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.unit())) * Math.cos(2 * Math.PI * random.unit());
}
