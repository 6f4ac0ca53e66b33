import { describe, expect, it } from 'vitest';
import { plannedAt, recordObservation } from '../../src/observer/observations.ts';
import { TOGETHER } from '../../src/reconciler/reconciler.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { freshAddr, openRig } from './rig.ts';

const rig = await openRig();

describe('The reconciler', () => {
  it('An observation that began before the newest one changes nothing', async () => {
    const addr = await rig.opened(100n);
    const startedAt = rig.clock.now();
    await rig.observe(addr, 100n);
    const before = await rig.wallet(addr);
    await rig.put({ kind: 'wallet', addr }, 'seen', { addr, balance: 50n, status: 1 }, startedAt);
    expect(await rig.process()).toBe(0);
    expect(await rig.wallet(addr)).toEqual(before);
  });

  it('Of several unprocessed observations of one target only the newest is processed', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(2_000);
    for (const balance of [90n, 80n, 107n]) await rig.putObservation(addr, balance);
    expect(await rig.process()).toBe(1);
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 107n, suspectedMin: 7n });
  });

  it('An answer about another address changes nothing', async () => {
    const addr = await rig.opened(100n);
    const before = await rig.wallet(addr);
    rig.clock.advance(1_000);
    const record = { addr: freshAddr(), balance: 5n, status: 1 };
    await rig.put({ kind: 'wallet', addr }, 'seen', record);
    await rig.process();
    expect(await rig.wallet(addr)).toEqual(before);
  });

  it.each(['inconclusive', 'absent'] as const)(
    'An observation with result %s changes nothing',
    async (result) => {
      const addr = await rig.opened(100n);
      const before = await rig.wallet(addr);
      rig.clock.advance(1_000);
      await rig.put({ kind: 'wallet', addr }, result, null);
      await rig.process();
      expect(await rig.wallet(addr)).toEqual(before);
    },
  );

  it('What is rolled back with a failing observation and done again is learned once', async () => {
    const learned = async () => {
      await rig.wait(6_000);
      const [row] = await rig.database.db.sql<{ n: number }[]>`
        select coalesce(sum(c::float8), 0) as n
        from tallyhook.waits, jsonb_array_elements_text(counts) c`;
      return row?.n ?? 0;
    };
    const [addr, bad] = [await rig.opened(100n), freshAddr()];
    const before = await learned();
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    rig.clock.advance(2_000);
    await rig.post();
    await rig.putObservation(addr, 105n);
    await rig.put({ kind: 'wallet', addr: bad }, 'seen', { addr: bad });
    await rig.process();
    expect(await rig.stateOf(id)).toBe('settled');
    expect((await learned()) - before).toBeCloseTo(1, 1);
  });

  it('An observation that fails five times is quarantined and delays no other', async () => {
    const [addr, bad] = [await rig.opened(100n), freshAddr()];
    rig.clock.advance(2_000);
    await rig.put({ kind: 'wallet', addr: bad }, 'seen', { addr: bad });
    await rig.putObservation(addr, 107n);
    await rig.process();
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 107n });
    const problem = async () => {
      const [row] = await rig.database.db.sql<{ failures: number; problem: string | null }[]>`
        select failures, problem from tallyhook.unprocessed_observations
        where target = ${`wallet:${bad.toLowerCase()}`}`;
      return row;
    };
    expect(await problem()).toEqual({ failures: 1, problem: null });
    expect(await rig.process()).toBe(0);
    await rig.wait(400_000);
    expect(await problem()).toMatchObject({
      failures: 5,
      problem: expect.stringContaining('balance'),
    });
    expect(await rig.process()).toBe(0);
    // The target has changed: the newer observation is processed.
    await rig.putObservation(bad, 5n);
    expect(await rig.process()).toBe(1);
    expect(await problem()).toBeUndefined();
  });

  it('A pass whose signal aborts ends after the running transaction, and the next one continues', async () => {
    const addrs = [];
    for (let n = 0; n < TOGETHER + 2; n++) addrs.push(await rig.opened(100n));
    rig.clock.advance(2_000);
    for (const addr of addrs) await rig.putObservation(addr, 107n);
    const stopping = new AbortController();
    const emit = async () => {
      stopping.abort();
      return [];
    };
    const stopped = await rig.reconcilerOf(rig.name, { emit });
    const pass = await stopped.runOnce(rig.clock.now(), stopping.signal);
    expect(pass).toEqual({ processed: TOGETHER, more: true });
    expect(await rig.process()).toBe(2);
  });

  it('A slow evaluation delays no other, and is repeated without quarantine', async () => {
    const [slow, other] = [await rig.opened(100n), await rig.opened(100n)];
    rig.clock.advance(2_000);
    for (const addr of [slow, other]) await rig.putObservation(addr, 107n);
    const { db } = rig.database;
    await db.begin(async (tx) => {
      await tx.sql`select from tallyhook.wallets where key = ${slow.toLowerCase()} for update`;
      await rig.process();
    });
    const observed = async (addr: string) => (await rig.wallet(addr))?.observedBalance;
    expect([await observed(slow), await observed(other)]).toEqual([100n, 107n]);
    await rig.wait(5_000);
    expect(await observed(slow)).toBe(107n);
  });

  it('An evaluation that always takes too long is quarantined, and until then delays no other for longer than itself', async () => {
    const [slow, slower] = [await rig.opened(100n), await rig.opened(100n)];
    const other = await rig.opened(100n);
    const { db, owner } = rig.database;
    const keys = [slow, slower].map((addr) => addr.toLowerCase());
    const problems = async () => {
      const rows = await owner.sql<{ target: string }[]>`
        select target from tallyhook.unprocessed_observations
        where problem is not null and substr(target, 8) = any(${keys}::text[])`;
      return rows.map(({ target }) => target).sort();
    };
    for (const addr of [slow, slower]) await rig.putObservation(addr, 107n);
    // As if both had taken too long for some minutes.
    await owner.sql`
      update tallyhook.unprocessed_observations set failures = 9 where problem is null`;
    await rig.putObservation(other, 107n);
    rig.clock.advance(2_000);
    await db.begin(async (tx) => {
      await tx.sql`select from tallyhook.wallets where key = any(${keys}::text[]) for update`;
      const pass = await rig.reconciler.runOnce(rig.clock.now());
      expect((await rig.wallet(other))?.observedBalance).toBe(107n);
      // The second one is left to the next pass.
      expect(pass).toEqual({ processed: 2, more: true });
      expect(await problems()).toHaveLength(1);
      await rig.process();
    });
    expect(await problems()).toEqual(keys.map((key) => `wallet:${key}`).sort());
  });

  it('A poll that is recorded while its wallet is evaluated waits, and neither is repeated', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 107n);
    const { db, owner } = rig.database;
    let [evaluations, records] = [0, 0];
    const emit = async () => {
      evaluations += 1;
      return [];
    };
    const evaluating = await rig.reconcilerOf(rig.name, { emit });
    rig.clock.advance(1_000);
    const endedAt = rig.clock.now();
    const row = {
      id: rig.ids.next('obs'),
      target: `wallet:${addr.toLowerCase()}`,
      kind: 'wallet',
      startedAt: endedAt - 10,
      endedAt,
      result: 'seen' as const,
      cause: null,
      record: { addr, balance: 107n, status: 1 },
    };
    const started: Promise<unknown>[] = [];
    await db.begin(async (tx) => {
      await tx.sql`select from tallyhook.wallets where key = ${addr.toLowerCase()} for update`;
      started.push(evaluating.runOnce(rig.clock.now()));
      await untilLockWaits(owner);
      started.push(
        db.begin((other) => {
          records += 1;
          return recordObservation(other, row, plannedAt(rig.clock.now()));
        }),
      );
      await untilLockWaits(owner, { count: 2 });
    });
    await Promise.all(started);
    expect([evaluations, records]).toEqual([1, 1]);
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 107n });
  });

  it('Processing again changes nothing', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    await rig.observe(addr, 107n);
    const before = [await rig.wallet(addr), await rig.eventsOf(addr)];
    expect(await rig.process()).toBe(0);
    expect(await rig.process()).toBe(0);
    expect([await rig.wallet(addr), await rig.eventsOf(addr)]).toEqual(before);
  });

  it('An evaluation that fails before its commit stores nothing', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 107n);
    const before = [await rig.wallet(addr), await rig.eventsOf(addr)];
    const breaking = await rig.reconcilerOf(rig.name, {
      emit: () => Promise.reject(new Error('cut off')),
    });
    await breaking.runOnce(rig.clock.now());
    expect([await rig.wallet(addr), await rig.eventsOf(addr)]).toEqual(before);
    expect(await rig.drifts(addr)).toEqual([]);
    await rig.wait(5_000);
    expect(await rig.drifts(addr)).toHaveLength(1);
    expect(await rig.typesOf(addr)).toHaveLength(3);
  });

  it('A newer observation that waits for a failing evaluation is processed at once', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 107n);
    rig.clock.advance(2_000);
    let newer: Promise<unknown> | undefined;
    const breaking = await rig.reconcilerOf(rig.name, {
      emit: () => {
        newer = rig.putObservation(addr, 104n);
        return Promise.reject(new Error('cut off'));
      },
    });
    await breaking.runOnce(rig.clock.now());
    await newer;
    expect(await rig.process()).toBe(1);
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 104n });
  });

  it('Of two reconcilers one processes each observation', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 90n);
    const other = await rig.reconcilerOf('dmn_other');
    const now = rig.clock.now();
    const passes = await Promise.all([rig.reconciler.runOnce(now), other.runOnce(now)]);
    expect(passes.map(({ processed }) => processed).sort()).toEqual([0, 1]);
    const changes = (await rig.typesOf(addr)).filter((type) => type.endsWith('balance_changed'));
    expect(changes).toHaveLength(1);
    // The lease expires, and the other reconciler continues.
    rig.clock.advance(20_000);
    await rig.putObservation(addr, 90n);
    expect(await other.runOnce(rig.clock.now())).toMatchObject({ processed: 1 });
    expect(await rig.drifts(addr)).toHaveLength(1);
    rig.clock.advance(20_000);
    await rig.process();
  });
});
