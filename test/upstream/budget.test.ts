/** The budget that polls pass, and the quota that the service sets. */
import { afterEach, describe, expect, it } from 'vitest';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { Budget } from '../../src/upstream/rate/budget.ts';
import type { Priority } from '../../src/upstream/rate/priority-queue.ts';
import { openQuota, type Quota, type TrafficClass } from '../../src/upstream/rate/quota.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { memoryQuotaStore, textLog } from './rig.ts';

const open: Budget[] = [];
afterEach(() => {
  for (const budget of open.splice(0)) budget.close();
});

interface Opened {
  budget: Budget;
  quota: Quota;
  clock: ManualClock;
  /** Records a throttling of that class. */
  throttled: (cls: TrafficClass, retryAt?: number) => Promise<void>;
  logged: { text: string };
}

async function openBudget(
  more: {
    rate?: number;
    setting?: number | null;
    concurrencyMax?: number;
    waitingMax?: number;
  } = {},
  clock = manualClock(),
  store = memoryQuotaStore(),
): Promise<Opened> {
  const { rate = 5, setting = rate, concurrencyMax = 10, waitingMax = 100 } = more;
  const { log, logged } = textLog();
  const rates = { setting, initialRate: rate };
  const quota = await openQuota({ store, clock, random: seededRandom(1), log }, rates);
  const settings = { concurrencyMax, steadyShare: 0.2, waitingMax, waitMs: 60_000 };
  const budget = new Budget({ quota, clock, metrics: makeMetrics() }, settings);
  open.push(budget);
  const throttled = (cls: TrafficClass, retryAt?: number) =>
    budget.record(cls, { kind: 'throttled', retryAt });
  return { budget, quota, clock, throttled, logged };
}

/** Acquires and releases all free slots, and returns how many there were. */
async function drain({ budget }: Opened): Promise<number> {
  let count = 0;
  for (; budget.free() > 0; count += 1) (await budget.acquire('steady'))?.();
  return count;
}

describe('The budget', () => {
  it('admits two polls at once and then one for every token', async () => {
    const opened = await openBudget();
    expect(await drain(opened)).toBe(2);
    expect(opened.budget.nextAt()).toBe(opened.clock.now() + 200);
    opened.clock.advance(200);
    expect(await drain(opened)).toBe(1);
  });

  it('serves waiting polls by priority when a slot becomes free', async () => {
    const { budget, clock } = await openBudget({ rate: 1000, concurrencyMax: 1 });
    const first = await budget.acquire('steady');
    const served: string[] = [];
    const wait = async (priority: Priority, name: string) => {
      const release = await budget.acquire(priority);
      served.push(name);
      clock.advance(1);
      release?.();
    };
    const all = [
      wait('steady', 'steady'),
      wait('pending', 'pending'),
      wait('unknown', 'unknown'),
      wait('unknown', 'unknown too'),
    ];
    expect(budget.waiting()).toBe(4);
    expect(budget.free()).toBe(0);
    clock.advance(10);
    first?.();
    await Promise.all(all);
    expect(served).toEqual(['unknown', 'unknown too', 'pending', 'steady']);
  });

  it('frees a slot once, however often it is released', async () => {
    const { budget, clock } = await openBudget({ concurrencyMax: 1 });
    const release = await budget.acquire('steady');
    expect(budget.free()).toBe(0);
    release?.();
    release?.();
    const again = await budget.acquire('steady');
    clock.advance(10_000);
    expect(budget.free()).toBe(0);
    again?.();
    expect(budget.free()).toBe(1);
  });

  it('refuses a poll when the queue is full, its signal aborts, or it is closed', async () => {
    const { budget } = await openBudget({ concurrencyMax: 1, waitingMax: 2 });
    await budget.acquire('steady');
    const stop = new AbortController();
    const aborted = budget.acquire('steady', stop.signal);
    const waiting = budget.acquire('unknown');
    expect(await budget.acquire('unknown')).toBeUndefined();
    stop.abort();
    expect(await aborted).toBeUndefined();
    expect(budget.waiting()).toBe(1);
    budget.close();
    expect(await waiting).toBeUndefined();
    expect(await budget.acquire('unknown')).toBeUndefined();
  });

  it('wakes a waiting poll when its token is there', async () => {
    const clock = { ...manualClock(), now: () => Math.floor(performance.now()) };
    const { budget } = await openBudget({ rate: 50 }, clock);
    const releases = await Promise.all([1, 2, 3, 4].map(() => budget.acquire('pending')));
    expect(releases.every(Boolean)).toBe(true);
  });

  it('is divided among the daemons that poll', async () => {
    const opened = await openBudget({ rate: 4 });
    opened.budget.share({ pollers: 4, appPerS: 0 });
    expect(opened.budget.ratePerS()).toBe(1);
    expect(opened.budget.bounds().effective).toBe(4);
    await drain(opened);
    expect(opened.budget.nextAt()).toBe(opened.clock.now() + 1000);
  });

  it('waits, when it is new, until the daemons that poll have divided it anew', async () => {
    const { budget, clock } = await openBudget({ rate: 4 });
    const startsAt = clock.now() + 500;
    budget.share({ pollers: 2, appPerS: 0, startsAt });
    expect([budget.free(), budget.nextAt()]).toEqual([0, startsAt]);
    clock.advance(500);
    expect(budget.free()).toBeGreaterThan(0);
  });

  it('leaves steady polls of all daemons what urgent polls do not use, and their share', async () => {
    const opened = await openBudget({ rate: 4 });
    const { budget, clock } = opened;
    budget.share({ pollers: 2, appPerS: 0 });
    expect([budget.steadyPerS(), budget.steadyMinPerS()]).toEqual([4, 0.8]);
    const poll = async (priority: 'pending' | 'steady') => {
      clock.advance(1_000);
      (await budget.acquire(priority))?.();
    };
    for (let i = 0; i < 30; i++) await poll('steady');
    expect(budget.steadyPerS()).toBe(4);
    for (let i = 0; i < 240; i++) await poll('pending');
    expect(budget.steadyPerS()).toBeCloseTo(2, 1);
  });

  it('is not used up by requests of apps, of which it counts those that were answered', async () => {
    const opened = await openBudget();
    const { budget, clock, throttled } = opened;
    await drain(opened);
    const nextAt = budget.nextAt();
    for (let i = 0; i < 50; i += 1) {
      await budget.record('app-read', { kind: 'answered' });
      await budget.record('app-write', { kind: 'answered' });
      await budget.record('app-write', { kind: 'none' });
      await budget.record('polls', { kind: 'answered' });
      await budget.record('client-token', { kind: 'answered' });
    }
    expect(budget.nextAt()).toBe(nextAt);
    expect(budget.ratePerS()).toBe(5);
    expect(budget.requests()).toBe(2);
    // Averaged over ten seconds.
    expect(budget.appPerS()).toBeCloseTo(10, 6);
    await throttled('app-write', clock.now() + 1_000);
    expect(budget.appPerS()).toBeCloseTo(10, 6);
  });

  it('without a setting follows the traffic of apps, below what a throttling leaves', async () => {
    const { budget, quota, clock, throttled } = await openBudget({ rate: 5, setting: null });
    const by = (appPerS: number) => {
      budget.share({ pollers: 1, appPerS });
      return budget.bounds();
    };
    expect(by(0)).toEqual({ setting: null, byApps: 5, learned: null, effective: 5 });
    clock.advance(30_000);
    expect(by(80)).toEqual({ setting: null, byApps: 20, learned: null, effective: 20 });
    await throttled('app-write', clock.now() + 1_000);
    expect(by(80)).toEqual({ setting: null, byApps: 20, learned: 10, effective: 10 });
    clock.set((quota.blockedUntil('polls') ?? 0) + 150_000);
    expect(by(80)).toEqual({ setting: null, byApps: 20, learned: null, effective: 20 });
    expect(by(0)).toMatchObject({ byApps: 5, effective: 5 });
  });

  it('with a setting stays at it, however much apps send, and states what it has learned', async () => {
    const { budget, clock } = await openBudget({ rate: 5, setting: 100 });
    budget.share({ pollers: 1, appPerS: 4_000 });
    expect(budget.bounds()).toEqual({ setting: 100, byApps: null, learned: 5, effective: 5 });
    clock.advance(30_000);
    expect(budget.bounds()).toEqual({ setting: 100, byApps: null, learned: null, effective: 100 });
  });
});

describe('A throttling', () => {
  it('with a deadline stops polls until then, in full, and those that wait', async () => {
    const { budget, quota, clock, throttled } = await openBudget({ concurrencyMax: 1 });
    const release = await budget.acquire('steady');
    const waiting = budget.acquire('unknown');
    const retryAt = clock.now() + 3_600_000;
    await throttled('polls', retryAt);
    expect(await waiting).toBeUndefined();
    release?.();
    clock.set(retryAt - 1);
    expect(budget.free()).toBe(0);
    expect(await budget.acquire('unknown')).toBeUndefined();
    const until = quota.blockedUntil('polls') ?? 0;
    expect(until).toBeGreaterThanOrEqual(retryAt);
    expect(until).toBeLessThanOrEqual(retryAt + 360_000);
    clock.set(until);
    expect(budget.free()).toBeGreaterThan(0);
  });

  it('without a deadline stops polls for 30 s, then longer, until one is answered', async () => {
    const { budget, quota, clock, throttled } = await openBudget();
    const silenceMs = async () => {
      await throttled('polls');
      const until = quota.blockedUntil('polls') ?? 0;
      const ms = until - clock.now();
      clock.set(until);
      return ms;
    };
    for (const base of [30_000, 60_000, 120_000]) {
      const ms = await silenceMs();
      expect(ms).toBeGreaterThanOrEqual(base / 2);
      expect(ms).toBeLessThanOrEqual(base);
    }
    await budget.record('polls', { kind: 'answered' });
    expect(await silenceMs()).toBeLessThanOrEqual(30_000);
  });

  it.each([
    ['app-read', 'app-write'],
    ['app-write', 'app-read'],
  ] as const)('of %s stops polls and that class, but not %s', async (cls, other) => {
    const { quota, clock, throttled } = await openBudget();
    const until = clock.now() + 60_000;
    await throttled(cls, until);
    expect(quota.blockedUntil(cls)).toBe(until);
    expect(quota.blockedUntil('polls')).toBeGreaterThanOrEqual(until);
    expect(quota.blockedUntil(other)).toBeUndefined();
  });

  it('of polls, or of apps without a deadline, does not stop apps', async () => {
    const { quota, clock, throttled } = await openBudget();
    await throttled('polls', clock.now() + 60_000);
    await throttled('app-write');
    expect(quota.blockedUntil('app-read')).toBeUndefined();
    expect(quota.blockedUntil('app-write')).toBeUndefined();
  });

  it('never moves a deadline earlier', async () => {
    const { quota, clock, throttled } = await openBudget();
    const late = clock.now() + 600_000;
    await throttled('app-write', late);
    await throttled('app-write', clock.now() + 1000);
    expect(quota.blockedUntil('app-write')).toBe(late);
  });

  it('halves the rate once, however many answers report it, and the rate recovers', async () => {
    const { budget, quota, clock, throttled } = await openBudget({ rate: 5 });
    for (let i = 0; i < 3; i += 1) await throttled('polls', clock.now() + 1000);
    expect(budget.bounds().effective).toBe(2.5);
    clock.set((quota.blockedUntil('polls') ?? 0) + 60_000);
    expect(budget.bounds().effective).toBe(3.5);
  });

  it('is logged once, however many requests it refuses, one of a day or more as a warning', async () => {
    const { clock, throttled, logged } = await openBudget();
    for (let n = 0; n < 5; n++) await throttled('polls', clock.now() + 86_400_000);
    expect(logged.text.split('a Retry-After of a day or more')).toHaveLength(2);
    expect(logged.text.split('"throttled"')).toHaveLength(2);
  });
});

describe('The stored quota', () => {
  it('survives a restart: deadlines, rate and recovery', async () => {
    const clock = manualClock();
    const store = memoryQuotaStore();
    const before = await openBudget({}, clock, store);
    await before.throttled('app-write', clock.now() + 3_600_000);
    clock.advance(60_000);
    const after = await openBudget({}, clock, store);
    for (const cls of ['polls', 'app-write', 'app-read'] as const)
      expect(after.quota.blockedUntil(cls)).toBe(before.quota.blockedUntil(cls));
    expect(await after.budget.acquire('unknown')).toBeUndefined();
    clock.set((before.quota.blockedUntil('polls') ?? 0) + 60_000);
    expect([before.budget.bounds().effective, after.budget.bounds().effective]).toEqual([3.5, 3.5]);
  });

  it('reaches other daemons when they read it again', async () => {
    const clock = manualClock();
    const store = memoryQuotaStore();
    const one = await openBudget({}, clock, store);
    const other = await openBudget({}, clock, store);
    await one.throttled('polls', clock.now() + 60_000);
    expect(other.budget.free()).toBeGreaterThan(0);
    await other.quota.sync();
    expect(other.budget.free()).toBe(0);
    expect(other.budget.bounds().effective).toBe(2.5);
  });

  it('is not lowered by the sync of an older throttling', async () => {
    const clock = manualClock();
    const store = memoryQuotaStore();
    const one = await openBudget({}, clock, store);
    const other = await openBudget({}, clock, store);
    await one.throttled('polls', clock.now() + 1000);
    const stored = { ...store.rows[0] };
    clock.advance(5000);
    await other.throttled('polls', clock.now() + 1000);
    Object.assign(store.rows[0] ?? {}, stored);
    const rate = other.budget.bounds().effective;
    await other.quota.sync();
    expect(other.budget.bounds().effective).toBe(rate);
  });

  it('that could not be stored holds at once, and is stored by a later sync', async () => {
    const store = memoryQuotaStore();
    const { save } = store;
    store.save = () => Promise.reject(new Error('database away'));
    const { quota, clock, throttled, logged } = await openBudget({}, manualClock(), store);
    await throttled('polls', clock.now() + 60_000);
    expect(quota.blockedUntil('polls')).toBeDefined();
    expect(logged.text).toContain('the quota could not be stored');
    expect(store.rows).toEqual([]);
    store.save = save;
    await quota.sync();
    expect(store.rows).toMatchObject([{ name: 'polls', rate: 2.5 }]);
  });

  it('that cannot be loaded prevents the start', async () => {
    const store = memoryQuotaStore();
    store.load = () => Promise.reject(new Error('database away'));
    await expect(openBudget({}, manualClock(), store)).rejects.toThrow('database away');
  });
});
