import { describe, expect, it } from 'vitest';
import { freshAddr, openRig } from './rig.ts';

const rig = await openRig();

describe('The reconciler', () => {
  it('An observation that began before the newest processed one changes nothing', async () => {
    const addr = await rig.opened(100n);
    const late = await rig.putObservation(addr, 50n);
    rig.clock.advance(1_000);
    await rig.observe(addr, 100n);
    const before = await rig.wallet(addr);
    await rig.database.owner.sql`
      update tallyhook.observations set processed_at = null where id = ${late.id}`;
    await rig.process();
    expect(await rig.wallet(addr)).toEqual(before);
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
      expect(await rig.process()).toBe(1);
      expect(await rig.wallet(addr)).toEqual(before);
    },
  );

  it('An observation that fails to process does not delay the others', async () => {
    const [addr, bad] = [await rig.opened(100n), freshAddr()];
    rig.clock.advance(2_000);
    const stuck = await rig.put({ kind: 'wallet', addr: bad }, 'seen', { addr: bad });
    await rig.putObservation(addr, 107n);
    await expect(rig.process()).rejects.toThrow();
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 107n });
    await rig.database.owner.sql`delete from tallyhook.observations where id = ${stuck.id}`;
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
    await expect(breaking.runOnce(rig.clock.now())).rejects.toThrow('cut off');
    expect([await rig.wallet(addr), await rig.eventsOf(addr)]).toEqual(before);
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.process()).toBe(1);
    expect(await rig.drifts(addr)).toHaveLength(1);
    expect(await rig.typesOf(addr)).toHaveLength(3);
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
