/** Probes: polls of the maintenance status, and what follows for the polls of targets. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { availableSince, listServiceChanges, type TargetRef } from '../../src/observer/observer.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';
import { observerOf } from './rig.ts';

let database: TestDatabase;
let sandbox: Sandbox;
let clock: ManualClock;
let wallet: TargetRef;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  sandbox = await startSandbox({ seed: 1, clock, clientId: 'client', clientSecret: 'hush-hush' });
  wallet = { kind: 'wallet', addr: sandbox.control.state().members[0]?.addr ?? '' };
  clock.advance(10_000);
});
afterEach(async () => {
  await closeAll();
  await sandbox.close();
  await database.drop();
});

async function openObserver(seed = 1) {
  const { upstream } = await upstreamTo(sandbox.url, clock);
  return observerOf(database.db, clock, upstream, seed);
}

async function eventTypes(): Promise<string[]> {
  const rows = await database.db.sql<{ type: string }[]>`
    select type from tallyhook.events order by recorded_at, subject_seq`;
  return rows.map(({ type }) => type);
}

describe('Probes', () => {
  it('are made at once after a poll is answered with maintenance', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.probeOnce(clock.now());
    sandbox.control.maintenance({ state: 'on' });
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    expect(await availableSince(database.db)).toBe(Number.POSITIVE_INFINITY);
    expect(await eventTypes()).toEqual(['service.maintenance_started']);
  });

  it('leave when the service was in which state', async () => {
    const observer = await openObserver();
    const from = clock.now();
    const states = ['off', 'off', 'on', 'on', 'off'] as const;
    for (const state of states) {
      sandbox.control.maintenance({ state });
      await observer.probeOnce(clock.now());
      clock.advance(60_000);
    }
    const changes = await listServiceChanges(database.db, from);
    expect(changes.map(({ at, state }) => [at - from, state])).toEqual([
      [0, 'active'],
      [120_000, 'maintenance'],
      [240_000, 'active'],
    ]);
    expect(await listServiceChanges(database.db, from + 180_000)).toEqual(changes.slice(1));
  });

  it('continue at their interval during a maintenance that a poll has detected', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.probeOnce(clock.now());
    sandbox.control.maintenance({ state: 'on' });
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    for (let i = 0; i < 3; i++) {
      clock.advance(5_000);
      const { nextAt } = await observer.runOnce(clock.now());
      expect(nextAt).toBe(clock.now() + 5_000);
    }
    sandbox.control.maintenance({ state: 'off' });
    clock.advance(5_000);
    await observer.runOnce(clock.now());
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
  });

  it('report the start and the end of maintenance once, and stop polls in between', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.probeOnce(clock.now());
    const since = await availableSince(database.db);
    sandbox.control.maintenance({ state: 'on' });
    clock.advance(30_000);
    await observer.probeOnce(clock.now());
    expect(await availableSince(database.db)).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 3; i++) {
      clock.advance(5_000);
      await observer.probeOnce(clock.now());
      expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 0 });
    }
    sandbox.control.maintenance({ state: 'off' });
    clock.advance(5_000);
    await observer.probeOnce(clock.now());
    expect(await eventTypes()).toEqual([
      'service.maintenance_started',
      'service.maintenance_ended',
    ]);
    expect(await availableSince(database.db)).toBeGreaterThan(since);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
  });

  it('let polls begin at a quarter of their rate after a maintenance', async () => {
    const { upstream } = await upstreamTo(sandbox.url, clock);
    const observer = observerOf(database.db, clock, upstream);
    await observer.probeOnce(clock.now());
    const rate = upstream.budget.learnedPerS();
    sandbox.control.maintenance({ state: 'on' });
    clock.advance(30_000);
    await observer.probeOnce(clock.now());
    expect(upstream.budget.learnedPerS()).toBe(rate);
    sandbox.control.maintenance({ state: 'off' });
    clock.advance(5_000);
    await observer.probeOnce(clock.now());
    expect(upstream.budget.learnedPerS()).toBe(rate / 4);
    clock.advance(300_000);
    expect(upstream.budget.learnedPerS()).toBe(rate);
  });

  it('report an announcement once, and polls continue', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.probeOnce(clock.now());
    sandbox.control.maintenance({ state: 'announced', start_in_ms: 3_600_000, message: 'soon' });
    for (let i = 0; i < 3; i++) {
      clock.advance(30_000);
      await observer.probeOnce(clock.now());
    }
    expect(await eventTypes()).toEqual(['service.maintenance_announced']);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
  });

  it('of two daemons at once report each change once and count one failure', async () => {
    const observers = [await openObserver(1), await openObserver(2)];
    const probe = () => Promise.all(observers.map((observer) => observer.probeOnce(clock.now())));
    sandbox.control.maintenance({ state: 'on' });
    await probe();
    expect(await eventTypes()).toEqual(['service.maintenance_started']);
    sandbox.control.maintenance({ state: 'off' });
    clock.advance(5_000);
    await probe();
    expect(await eventTypes()).toHaveLength(2);
    sandbox.control.addFault({ kind: 'dropped', endpoint: 'maintenance', count: 6 });
    clock.advance(30_000);
    await probe();
    const [row] = await database.db.sql`select state, failures from tallyhook.service_state`;
    expect(row).toMatchObject({ state: 'active', failures: 1 });
  });

  it('report the service as unreachable after three failures, and as recovered after an answer', async () => {
    const observer = await openObserver();
    await observer.probeOnce(clock.now());
    sandbox.control.addFault({ kind: 'dropped', endpoint: 'maintenance', count: 4 });
    for (let i = 0; i < 5; i++) {
      clock.advance(30_000);
      await observer.probeOnce(clock.now());
    }
    expect(await eventTypes()).toEqual(['service.unreachable', 'service.recovered']);
  });
});
