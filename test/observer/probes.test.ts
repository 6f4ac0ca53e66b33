/** Probes: polls of the maintenance status, and what follows for the polls of targets. */
import { describe, expect, it } from 'vitest';
import { availableSince, listServiceChanges } from '../../src/observer/observer.ts';
import { upstreamTo } from '../upstream/rig.ts';
import { observerOf, useWorld } from './rig.ts';

const world = useWorld();

/** An observer that probed the service just before a maintenance began, then polled. */
async function pollDuringMaintenance() {
  const observer = await world.openObserver();
  await observer.add(world.database.db, [world.wallet]);
  await observer.probeOnce(world.clock.now());
  world.sandbox.control.maintenance({ state: 'on' });
  world.clock.advance(1_000);
  await observer.runOnce(world.clock.now());
  return observer;
}

async function eventTypes(): Promise<string[]> {
  const rows = await world.database.db.sql<{ type: string }[]>`
    select type from tallyhook.events order by recorded_at, subject_seq`;
  return rows.map(({ type }) => type);
}

describe('Probes', () => {
  it('are made at once after a poll is answered with maintenance', async () => {
    await pollDuringMaintenance();
    expect(await availableSince(world.database.db)).toBe(Number.POSITIVE_INFINITY);
    expect(await eventTypes()).toEqual(['service.maintenance_started']);
  });

  it('leave when the service was in which state', async () => {
    const observer = await world.openObserver();
    const from = world.clock.now();
    const states = ['off', 'off', 'on', 'on', 'off'] as const;
    for (const state of states) {
      world.sandbox.control.maintenance({ state });
      await observer.probeOnce(world.clock.now());
      world.clock.advance(60_000);
    }
    const changes = await listServiceChanges(world.database.db, from);
    expect(changes.map(({ at, state }) => [at - from, state])).toEqual([
      [0, 'active'],
      [120_000, 'maintenance'],
      [240_000, 'active'],
    ]);
    expect(await listServiceChanges(world.database.db, from + 180_000)).toEqual(changes.slice(1));
  });

  it('continue at their interval during a maintenance that a poll has detected', async () => {
    const observer = await pollDuringMaintenance();
    for (let i = 0; i < 3; i++) {
      world.clock.advance(5_000);
      const { nextAt } = await observer.runOnce(world.clock.now());
      expect(nextAt).toBe(world.clock.now() + 5_000);
    }
    world.sandbox.control.maintenance({ state: 'off' });
    world.clock.advance(5_000);
    await observer.runOnce(world.clock.now());
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 1 });
  });

  it('report the start and the end of maintenance once, and stop polls in between', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    await observer.probeOnce(world.clock.now());
    const since = await availableSince(world.database.db);
    world.sandbox.control.maintenance({ state: 'on' });
    world.clock.advance(30_000);
    await observer.probeOnce(world.clock.now());
    expect(await availableSince(world.database.db)).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 3; i++) {
      world.clock.advance(5_000);
      await observer.probeOnce(world.clock.now());
      expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 0 });
    }
    world.sandbox.control.maintenance({ state: 'off' });
    world.clock.advance(5_000);
    await observer.probeOnce(world.clock.now());
    expect(await eventTypes()).toEqual([
      'service.maintenance_started',
      'service.maintenance_ended',
    ]);
    expect(await availableSince(world.database.db)).toBeGreaterThan(since);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 1 });
  });

  it('let polls begin at a quarter of their rate after a maintenance', async () => {
    const { upstream } = await upstreamTo(world.sandbox.url, world.clock);
    const observer = observerOf(world.database.db, world.clock, upstream);
    await observer.probeOnce(world.clock.now());
    const rate = upstream.budget.bounds().effective;
    world.sandbox.control.maintenance({ state: 'on' });
    world.clock.advance(30_000);
    await observer.probeOnce(world.clock.now());
    expect(upstream.budget.bounds().effective).toBe(rate);
    world.sandbox.control.maintenance({ state: 'off' });
    world.clock.advance(5_000);
    await observer.probeOnce(world.clock.now());
    expect(upstream.budget.bounds().effective).toBe(rate / 4);
    world.clock.advance(300_000);
    expect(upstream.budget.bounds().effective).toBe(rate);
  });

  it('report an announcement once, and polls continue', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    await observer.probeOnce(world.clock.now());
    world.sandbox.control.maintenance({
      state: 'announced',
      start_in_ms: 3_600_000,
      message: 'soon',
    });
    for (let i = 0; i < 3; i++) {
      world.clock.advance(30_000);
      await observer.probeOnce(world.clock.now());
    }
    expect(await eventTypes()).toEqual(['service.maintenance_announced']);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 1 });
  });

  it('of two daemons at once report each change once and count one failure', async () => {
    const observers = [await world.openObserver(1), await world.openObserver(2)];
    const probe = () =>
      Promise.all(observers.map((observer) => observer.probeOnce(world.clock.now())));
    world.sandbox.control.maintenance({ state: 'on' });
    await probe();
    expect(await eventTypes()).toEqual(['service.maintenance_started']);
    world.sandbox.control.maintenance({ state: 'off' });
    world.clock.advance(5_000);
    await probe();
    expect(await eventTypes()).toHaveLength(2);
    world.sandbox.control.addFault({ kind: 'dropped', endpoint: 'maintenance', count: 6 });
    world.clock.advance(30_000);
    await probe();
    const [row] = await world.database.db.sql`select state, failures from tallyhook.service_state`;
    expect(row).toMatchObject({ state: 'active', failures: 1 });
  });

  it('report the service as unreachable after three failures, and as recovered after an answer', async () => {
    const observer = await world.openObserver();
    await observer.probeOnce(world.clock.now());
    world.sandbox.control.addFault({ kind: 'dropped', endpoint: 'maintenance', count: 4 });
    for (let i = 0; i < 5; i++) {
      world.clock.advance(30_000);
      await observer.probeOnce(world.clock.now());
    }
    expect(await eventTypes()).toEqual(['service.unreachable', 'service.recovered']);
  });
});
