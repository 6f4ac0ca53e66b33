/** Polls of steady targets: what they write, what they teach, and when the next one is due. */
import { expect, it } from 'vitest';
import { expedite, targetName } from '../../src/observer/observer.ts';
import { changesPerS, PRIOR } from '../../src/observer/schedule/change-rate.ts';
import { claimDue, nextDue } from '../../src/observer/targets.ts';
import { processAll, useWorld } from './rig.ts';

const STEADY_MS = 60_000;

const world = useWorld();

/** An observer that has polled the wallet once, and a pass some time later. */
async function openObserver() {
  const observer = await world.openObserver(1, { minGapMs: 1_000 });
  await observer.add(world.database.db, [world.wallet]);
  await observer.runOnce(world.clock.now());
  return {
    ...observer,
    async passAfter(ms: number) {
      world.clock.advance(ms);
      let unprocessed = 0;
      const count = () => {
        unprocessed++;
      };
      const { observations } = await observer.runOnce(world.clock.now(), undefined, count);
      return { observations, unprocessed };
    },
  };
}

async function rows() {
  const [counted] = await world.database.db.sql<{ observations: number; unprocessed: number }[]>`
    select (select count(*)::int from tallyhook.observations) as observations,
      (select count(*)::int from tallyhook.unprocessed_observations) as unprocessed`;
  return counted;
}

async function learned() {
  const [rate] = await world.database.db.sql<{ changes: number; seconds: number }[]>`
    select changes, changes_over_s as seconds from tallyhook.targets
    where name = ${targetName(world.wallet)}`;
  return changesPerS(rate ?? { changes: Number.NaN, seconds: 1 });
}

it('A target that was never polled has the prior change rate', async () => {
  await openObserver();
  expect(await learned()).toBe(changesPerS(PRIOR));
});

it('A poll that shows nothing new adds no row, and is processed after half the steady interval', async () => {
  const { passAfter } = await openObserver();
  await processAll(world.database);
  for (let n = 0; n < 10; n++)
    expect(await passAfter(2_000)).toEqual({ observations: 1, unprocessed: 0 });
  expect(await rows()).toEqual({ observations: 1, unprocessed: 0 });
  expect(await passAfter(STEADY_MS / 2)).toEqual({ observations: 1, unprocessed: 1 });
  expect(await rows()).toEqual({ observations: 1, unprocessed: 1 });
});

it('A poll of a pending target is processed even if it shows nothing new', async () => {
  const { passAfter } = await openObserver();
  await processAll(world.database);
  await expedite(world.database.db, new Map([[targetName(world.wallet), world.clock.now()]]));
  expect(await passAfter(100)).toEqual({ observations: 1, unprocessed: 1 });
});

it('A change raises the change rate, and shortens the interval', async () => {
  const { passAfter } = await openObserver();
  await processAll(world.database);
  world.sandbox.control.setWallet(world.wallet.addr, { delta: 7n });
  expect(await passAfter(2_000)).toEqual({ observations: 1, unprocessed: 1 });
  expect(await learned()).toBeGreaterThan(2 * changesPerS(PRIOR));
  await passAfter(2_000);
  expect(await rows()).toMatchObject({ observations: 2 });
});

it('While the reconciler is behind, no steady target is polled, and a pending one is', async () => {
  const { passAfter } = await openObserver();
  expect(await passAfter(10_000)).toEqual({ observations: 0, unprocessed: 0 });
  await expedite(world.database.db, new Map([[targetName(world.wallet), world.clock.now()]]));
  expect(await passAfter(100)).toEqual({ observations: 1, unprocessed: 1 });
  await processAll(world.database);
  expect(await passAfter(10_000)).toEqual({ observations: 1, unprocessed: 0 });
});

it('A change while an operation on the target is open does not raise the change rate', async () => {
  const { passAfter } = await openObserver();
  await expedite(world.database.db, new Map([[targetName(world.wallet), world.clock.now()]]));
  world.sandbox.control.setWallet(world.wallet.addr, { delta: 7n });
  expect(await passAfter(2_000)).toEqual({ observations: 1, unprocessed: 1 });
  expect(await learned()).toBeLessThan(changesPerS(PRIOR));
});

it('The interval follows from the budget and the number of targets', async () => {
  const observer = await openObserver();
  expect(await observer.pricing()).toMatchObject({ bounds: { minMs: 1_000, maxMs: STEADY_MS } });
  const members = world.sandbox.control.state().members.flatMap(({ addr }) => addr ?? []);
  const refs = members.map((addr) => ({ kind: 'wallet' as const, addr }));
  await observer.add(world.database.db, refs);
  world.clock.advance(STEADY_MS);
  const { perS, intervalMs, price } = await observer.pricing();
  expect(intervalMs).toBeCloseTo((members.length / perS) * 1000, 6);
  expect(price).toBeGreaterThan(0);
});

it('A target that a daemon has claimed is due again at the end of its lease', async () => {
  await openObserver();
  await processAll(world.database);
  world.clock.advance(5_000);
  const options = { leaseMs: 10_000, steadyFirst: false };
  const { targets } = await claimDue(world.database.db, world.clock.now(), 10, options);
  expect(targets).toHaveLength(1);
  expect(await nextDue(world.database.db)).toBe(world.clock.now() + 10_000);
});
