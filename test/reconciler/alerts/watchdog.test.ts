/** Late polls and stuck operations: one event each, however often and by whom they are checked. */
import { describe, expect, it } from 'vitest';
import { endedEvent } from '../../../src/operations/operations.ts';
import { stuckAfterMs } from '../../../src/reconciler/alerts/rule.ts';
import { countAlerts } from '../../../src/reconciler/reconciler.ts';
import { untilLockWaits } from '../../harness/lock-waits.ts';
import { freshAddr } from '../rig.ts';
import { openAlertRig, SETTINGS } from './rig.ts';

const LATE = 'observer:targets';

describe('A target that is not polled', () => {
  it('is late after twice the guaranteed age, until it is polled again', async () => {
    const rig = await openAlertRig();
    await rig.opened(100n);
    await rig.opened(100n);
    await rig.serviceIs('active');
    await rig.check(110_000);
    expect(await rig.events(LATE)).toEqual([]);
    const polledAt = rig.clock.now();
    await rig.polled();
    await rig.check(121_000);
    await rig.check(60_000);
    expect(await rig.events(LATE)).toMatchObject([
      {
        type: 'observer.late',
        data: {
          targets: 2,
          observation_age_max_ms: 60_000,
          oldest_poll_at: new Date(polledAt).toISOString(),
        },
      },
    ]);
    const lateSince = new Date(rig.clock.now() - 60_000).toISOString();
    await rig.polled();
    await rig.check(6_000);
    await rig.check(6_000);
    expect(await rig.events(LATE)).toMatchObject([
      { type: 'observer.late', seq: 1 },
      { type: 'observer.recovered', seq: 2, data: { late_since: lateSince } },
    ]);
  });

  it('is counted anew while it is late, without a further event', async () => {
    const rig = await openAlertRig();
    await rig.opened(100n);
    await rig.serviceIs('active');
    await rig.check(121_000);
    await rig.opened(100n);
    await rig.check(121_000);
    expect(await countAlerts(rig.db)).toMatchObject([
      { rule: 'observer.late', count: 1, detail: { targets: 2 } },
    ]);
    expect(await rig.events(LATE)).toHaveLength(1);
  });

  it('is not late because the service is down, nor soon after', async () => {
    const rig = await openAlertRig();
    await rig.opened(100n);
    await rig.serviceIs('maintenance');
    await rig.check(600_000);
    await rig.serviceIs('active');
    await rig.check(119_000);
    expect(await rig.events(LATE)).toEqual([]);
    await rig.check(2_000);
    expect(await rig.events(LATE)).toHaveLength(1);
    await rig.serviceIs('maintenance');
    await rig.check(600_000);
    expect(await rig.events(LATE)).toHaveLength(1);
  });

  it('is late once for all daemons together, also after a restart', async () => {
    const rig = await openAlertRig();
    await rig.opened(100n);
    await rig.serviceIs('active');
    rig.clock.advance(121_000);
    const daemons = [await rig.alertsOf('dmn_a'), await rig.alertsOf('dmn_b')];
    await Promise.all(daemons.map((one) => one.runOnce(rig.clock.now())));
    for (const name of ['dmn_c', 'dmn_d']) {
      rig.clock.advance(30_000);
      await (await rig.alertsOf(name)).runOnce(rig.clock.now());
    }
    expect(await rig.events(LATE)).toHaveLength(1);
  });
});

describe('An operation that does not settle', () => {
  it('is not stuck when it settles while it is checked', async () => {
    const rig = await openAlertRig();
    const addr = await rig.opened(100n);
    await rig.serviceIs('active');
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    await rig.polled(1_300_000);
    const { promise: checked, resolve: settleNow } = Promise.withResolvers<void>();
    const { promise: moving, resolve: hasMoved } = Promise.withResolvers<void>();
    const settled = rig.db.begin(async (tx) => {
      const at = rig.clock.now();
      const settling = { id, to: 'settled', at, cause: 'a balance', settledAt: at } as const;
      const moved = await rig.operations.move(tx, [settling]);
      await rig.outbox.emit(
        tx,
        moved.map((one) => endedEvent(one, at)),
      );
      hasMoved();
      await checked;
    });
    await moving;
    const check = rig.check();
    await untilLockWaits(rig.database.owner);
    settleNow();
    await Promise.all([settled, check]);
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'settled']);
    expect(await countAlerts(rig.db)).toEqual([]);
  });

  it('is stuck once, after ten times the minimum as long as nothing was learned', async () => {
    const rig = await openAlertRig();
    await rig.serviceIs('active');
    const id = await rig.give(freshAddr(), 5n);
    await rig.accept(id);
    const executedAt = new Date(rig.clock.now()).toISOString();
    await rig.check(590_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted']);
    await rig.check(11_000);
    await rig.check(11_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'stuck']);
    const [, event] = await rig.events(`operation:${id}`);
    expect(event?.data).toMatchObject({
      operation_id: id,
      state: 'accepted',
      amount: '5',
      executed_at: executedAt,
      stuck_after_ms: 600_000,
    });
  });

  it('is forgotten when it settles', async () => {
    const rig = await openAlertRig();
    const addr = await rig.opened(0n);
    await rig.serviceIs('active');
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    await rig.polled(601_000);
    await rig.check(1_000);
    expect(await countAlerts(rig.db)).toContainEqual(
      expect.objectContaining({ rule: 'operation.stuck', count: 1 }),
    );
    await rig.observe(addr, 5n);
    await rig.check(1_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'stuck', 'settled']);
    expect((await countAlerts(rig.db)).map(({ rule }) => rule)).not.toContain('operation.stuck');
  });

  it('is not stuck while its wallet waits for a poll that could show it', async () => {
    const rig = await openAlertRig();
    const addr = await rig.opened(0n);
    await rig.serviceIs('active');
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    await rig.polled(599_000);
    await rig.check(60_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted']);
    await rig.polled(1_000);
    await rig.check();
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'stuck']);
  });

  it('is stuck sooner when its kind was seen to settle sooner', async () => {
    const rig = await openAlertRig();
    const addr = await rig.opened(0n);
    await rig.serviceIs('active');
    for (let n = 1n; n <= 20n; n++) {
      await rig.accept(await rig.give(addr, 1n));
      await rig.observe(addr, n, 30_000);
    }
    const id = await rig.give(freshAddr(), 5n);
    await rig.accept(id);
    await rig.polled(80_000);
    await rig.check();
    expect((await rig.endOf(id)).types).toEqual(['accepted']);
    await rig.polled(12_000);
    await rig.check();
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'stuck']);
  });

  it('is not stuck while the service is down, nor by the time that it was', async () => {
    const rig = await openAlertRig();
    const id = await rig.give(freshAddr(), 5n);
    await rig.accept(id);
    await rig.serviceIs('maintenance');
    await rig.check(3_600_000);
    await rig.serviceIs('active');
    await rig.check(590_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted']);
    await rig.check(11_000);
    expect((await rig.endOf(id)).types).toEqual(['accepted', 'stuck']);
  });

  it('An unknown operation is not stuck, however old it is', async () => {
    const rig = await openAlertRig();
    await rig.serviceIs('active');
    const id = await rig.give(freshAddr(), 5n);
    await rig.lose(id);
    await rig.check(3_600_000);
    expect((await rig.endOf(id)).types).toEqual(['unknown']);
  });

  it.each([
    [undefined, 600_000],
    [{ count: 19, p99Ms: 1_000 }, 600_000],
    [{ count: 20, p99Ms: 1_000 }, 60_000],
    [{ count: 1_000, p99Ms: 40_000 }, 120_000],
  ])('With the settle times %j it is stuck after %i ms', (times, expected) => {
    expect(stuckAfterMs(times, SETTINGS)).toBe(expected);
  });
});
