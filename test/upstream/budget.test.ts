/** The gate that looks pass, and what the service taught it. */
import { afterEach, describe, expect, it } from 'vitest';
import { makeLog } from '../../src/kernel/log.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { type Budget, makeBudget } from '../../src/upstream/rate/budget.ts';
import { openQuota, type Quota } from '../../src/upstream/rate/quota.ts';
import type { Priority, QuotaState } from '../../src/upstream/types.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { memoryKeeper } from './scripted-service.ts';

const open: Budget[] = [];
afterEach(() => {
  for (const budget of open.splice(0)) budget.close();
});

interface Gate {
  budget: Budget;
  quota: Quota;
  clock: ManualClock;
  kept: QuotaState[];
  rates: number[];
}

async function gateWith(
  more: { rate?: number; ceiling?: number; concurrencyMax?: number; waitingMax?: number } = {},
  clock = manualClock(),
  keeper = memoryKeeper(),
): Promise<Gate> {
  const { rate = 5, ceiling = 5, concurrencyMax = 10, waitingMax = 100 } = more;
  const quota = await openQuota({
    keeper,
    clock,
    random: seededRandom(1),
    log: makeLog('silent'),
    ceiling,
    startRate: rate,
  });
  const rates: number[] = [];
  const settings = { concurrencyMax, steadyShare: 0.2, waitingMax, waitMs: 60_000 };
  const budget = makeBudget(quota, clock, settings, (perS) => rates.push(perS));
  open.push(budget);
  return { budget, quota, clock, kept: keeper.rows, rates };
}

/** Takes all that is free, and answers how many looks that were. */
async function drain({ budget }: Gate): Promise<number> {
  let count = 0;
  for (; budget.free() > 0; count += 1) (await budget.take('steady'))?.();
  return count;
}

describe('the budget', () => {
  it('lets two go at once and then one for every token', async () => {
    const gate = await gateWith({ rate: 5 });
    expect(await drain(gate)).toBe(2);
    expect(gate.budget.nextAt()).toBe(gate.clock.now() + 200);
    gate.clock.advance(200);
    expect(await drain(gate)).toBe(1);
  });

  it('serves those who wait by priority when a place is free', async () => {
    const gate = await gateWith({ rate: 1000, ceiling: 1000, concurrencyMax: 1 });
    const { budget } = gate;
    const first = await budget.take('steady');
    const served: string[] = [];
    const wait = async (priority: Priority, name: string) => {
      const leave = await budget.take(priority);
      served.push(name);
      gate.clock.advance(1);
      leave?.();
    };
    const all = [
      wait('steady', 'steady'),
      wait('pending', 'pending'),
      wait('unknown', 'unknown'),
      wait('unknown', 'unknown too'),
    ];
    expect(budget.waiting()).toBe(4);
    expect(budget.free()).toBe(0);
    gate.clock.advance(10);
    first?.();
    await Promise.all(all);
    expect(served).toEqual(['unknown', 'unknown too', 'pending', 'steady']);
  });

  it('gives a place back once, however often it is left', async () => {
    const gate = await gateWith({ concurrencyMax: 1 });
    const leave = await gate.budget.take('steady');
    expect(gate.budget.free()).toBe(0);
    leave?.();
    leave?.();
    const again = await gate.budget.take('steady');
    gate.clock.advance(10_000);
    expect(gate.budget.free()).toBe(0);
    again?.();
    expect(gate.budget.free()).toBe(1);
  });

  it('sends away whom the queue has no room for, who aborts, and all when it closes', async () => {
    const { budget } = await gateWith({ concurrencyMax: 1, waitingMax: 2 });
    await budget.take('steady');
    const stop = new AbortController();
    const aborted = budget.take('steady', stop.signal);
    const left = budget.take('unknown');
    expect(await budget.take('unknown')).toBeUndefined();
    stop.abort();
    expect(await aborted).toBeUndefined();
    expect(budget.waiting()).toBe(1);
    budget.close();
    expect(await left).toBeUndefined();
    expect(await budget.take('unknown')).toBeUndefined();
  });

  it('wakes by itself when a token is there', async () => {
    const clock = { now: () => Math.floor(performance.now()) };
    const gate = await gateWith({ rate: 50, ceiling: 50 }, { ...manualClock(), ...clock });
    const leaves = await Promise.all([1, 2, 3, 4].map(() => gate.budget.take('pending')));
    expect(leaves.every(Boolean)).toBe(true);
  });

  it('is divided among daemons', async () => {
    const gate = await gateWith({ rate: 4 });
    gate.budget.shareAmong(4);
    expect(gate.budget.ratePerS()).toBe(1);
    expect(gate.budget.learnedPerS()).toBe(4);
    await drain(gate);
    expect(gate.budget.nextAt()).toBe(gate.clock.now() + 1000);
  });

  it('subtracts app traffic from what it promises, but for the share of looks', async () => {
    const gate = await gateWith({ rate: 5 });
    for (let i = 0; i < 100; i += 1) {
      gate.budget.charge();
      gate.clock.advance(500);
    }
    expect(gate.budget.ratePerS()).toBeCloseTo(3, 0);
    for (let i = 0; i < 1000; i += 1) gate.budget.charge();
    expect(gate.budget.ratePerS()).toBe(1);
  });
});

describe('a throttling', () => {
  it('with a deadline silences looks until then, to the end, and sends waiters away', async () => {
    const gate = await gateWith({ concurrencyMax: 1 });
    const leave = await gate.budget.take('steady');
    const waiting = gate.budget.take('unknown');
    const asked = gate.clock.now() + 3_600_000;
    await gate.budget.throttled('polls', asked);
    expect(await waiting).toBeUndefined();
    leave?.();
    gate.clock.set(asked - 1);
    expect(gate.budget.free()).toBe(0);
    expect(await gate.budget.take('unknown')).toBeUndefined();
    expect(gate.quota.blockedUntil('polls')).toBeLessThanOrEqual(asked + 360_000);
    gate.clock.set(gate.quota.blockedUntil('polls') ?? 0);
    expect(gate.budget.free()).toBeGreaterThan(0);
  });

  it('without a deadline silences for 30 s, then longer, until a look succeeds', async () => {
    const gate = await gateWith();
    const silence = async () => {
      await gate.budget.throttled('polls', undefined);
      const until = gate.quota.blockedUntil('polls') ?? 0;
      const ms = until - gate.clock.now();
      gate.clock.set(until);
      return ms;
    };
    for (const base of [30_000, 60_000, 120_000]) {
      const ms = await silence();
      expect(ms).toBeGreaterThanOrEqual(base / 2);
      expect(ms).toBeLessThanOrEqual(base);
    }
    gate.budget.succeeded();
    expect(await silence()).toBeLessThanOrEqual(30_000);
  });

  it.each(['app-read', 'app-write'] as const)(
    'drawn by %s silences looks and that class only',
    async (cls) => {
      const gate = await gateWith();
      const until = gate.clock.now() + 60_000;
      await gate.budget.throttled(cls, until);
      const other = cls === 'app-read' ? 'app-write' : 'app-read';
      expect(gate.quota.blockedUntil(cls)).toBe(until);
      expect(gate.quota.blockedUntil('polls')).toBeGreaterThanOrEqual(until);
      expect(gate.quota.blockedUntil(other)).toBeUndefined();
    },
  );

  it('of looks leaves apps alone, and so does one of apps without a deadline', async () => {
    const gate = await gateWith();
    await gate.budget.throttled('polls', gate.clock.now() + 60_000);
    await gate.budget.throttled('app-write', undefined);
    expect(gate.quota.blockedUntil('app-read')).toBeUndefined();
    expect(gate.quota.blockedUntil('app-write')).toBeUndefined();
  });

  it('never moves a deadline earlier', async () => {
    const gate = await gateWith();
    const late = gate.clock.now() + 600_000;
    await gate.budget.throttled('app-write', late);
    await gate.budget.throttled('app-write', gate.clock.now() + 1000);
    expect(gate.quota.blockedUntil('app-write')).toBe(late);
  });

  it('lowers the rate once, however many answers tell of it', async () => {
    const gate = await gateWith({ rate: 5 });
    await drain(gate);
    const until = gate.clock.now() + 1000;
    await gate.budget.throttled('polls', until);
    const rate = gate.quota.rate();
    expect(rate).toBeLessThan(5);
    await gate.budget.throttled('polls', until);
    expect(gate.quota.rate()).toBe(rate);
    expect(gate.rates.at(-1)).toBe(rate);
  });
});

describe('what is kept', () => {
  it('outlives a restart: deadline, rate and where the recovery stands', async () => {
    const clock = manualClock();
    const keeper = memoryKeeper();
    const before = await gateWith({}, clock, keeper);
    await before.budget.throttled('app-write', clock.now() + 3_600_000);
    const after = await gateWith({}, clock, keeper);
    for (const cls of ['polls', 'app-write'] as const)
      expect(after.quota.blockedUntil(cls)).toBe(before.quota.blockedUntil(cls));
    expect(after.quota.blockedUntil('app-read')).toBeUndefined();
    expect(after.quota.rate()).toBe(before.quota.rate());
    expect(await after.budget.take('unknown')).toBeUndefined();
  });

  it('reaches other daemons when they read it again', async () => {
    const clock = manualClock();
    const keeper = memoryKeeper();
    const one = await gateWith({}, clock, keeper);
    const other = await gateWith({}, clock, keeper);
    await one.budget.throttled('polls', clock.now() + 60_000);
    expect(other.budget.free()).toBeGreaterThan(0);
    await other.quota.sync();
    expect(other.budget.free()).toBe(0);
    expect(other.quota.rate()).toBe(one.quota.rate());
  });

  it('grows with the rate, every ten seconds at most', async () => {
    const gate = await gateWith({ rate: 1, ceiling: 20 });
    for (let s = 1; s <= 25; s += 1) {
      gate.clock.advance(1000);
      gate.budget.succeeded();
    }
    expect(gate.budget.learnedPerS()).toBe(4);
    expect(gate.kept).toMatchObject([{ name: 'polls', rate: 4, blockedUntil: null }]);
  });

  it('that cannot be kept stops nobody, and that cannot be read stops the start', async () => {
    const broken = memoryKeeper();
    broken.save = () => Promise.reject(new Error('gone'));
    const gate = await gateWith({}, manualClock(), broken);
    await gate.budget.throttled('polls', gate.clock.now() + 1000);
    expect(gate.quota.blockedUntil('polls')).toBeDefined();
    broken.load = () => Promise.reject(new Error('gone'));
    await expect(gateWith({}, manualClock(), broken)).rejects.toThrow('gone');
  });
});
