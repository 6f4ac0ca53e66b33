import { describe, expect, it } from 'vitest';
import {
  listLastRecords,
  listObservations,
  type TargetRef,
  targetName,
} from '../../src/observer/observer.ts';
import * as store from '../../src/observer/targets.ts';
import { completeRecords } from '../harness/recorded-rows.ts';
import { putOperations } from '../ledger/fixture.ts';
import { upstreamTo } from '../upstream/rig.ts';
import { observerOf, processAll, useWorld } from './rig.ts';

const world = useWorld();

const observationsOf = (ref: TargetRef) =>
  listObservations(world.database.db, targetName(ref), 100);
async function nextInMs(ref: TargetRef): Promise<number> {
  const rows = await world.database.db.sql<{ at: number }[]>`
    select next_poll_at as at from tallyhook.targets where name = ${targetName(ref)}`;
  return (rows[0]?.at ?? Number.NaN) - world.clock.now();
}
describe('Polling', () => {
  it('An added target is polled, recorded, and due again after the shortest gap', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 1 });
    const [observation] = await observationsOf(world.wallet);
    expect(observation).toMatchObject({
      result: 'seen',
      record: { addr: world.wallet.addr, balance: 1_000 },
    });
    const gap = await nextInMs(world.wallet);
    expect(gap).toBeGreaterThanOrEqual(60_000);
    expect(gap).toBeLessThanOrEqual(67_000);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 0 });
    const [seen] = await listLastRecords(world.database.db, [targetName(world.wallet)]);
    expect(seen?.lastStartedAt).toBe(observation?.startedAt);
  });

  it('A pass whose signal aborts begins no poll, and the next pass does', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    const now = world.clock.now();
    expect(await observer.runOnce(now, AbortSignal.abort())).toMatchObject({ observations: 0 });
    expect(await observer.runOnce(now)).toMatchObject({ observations: 1 });
  });

  it('A wallet that does not exist is absent and has no record', async () => {
    const observer = await world.openObserver();
    const absent: TargetRef = { kind: 'wallet', addr: `0x${'0'.repeat(40)}` };
    await observer.add(world.database.db, [absent]);
    await observer.runOnce(world.clock.now());
    expect(await observationsOf(absent)).toMatchObject([{ result: 'absent', record: null }]);
    expect(await listLastRecords(world.database.db, [targetName(absent)])).toEqual([]);
  });

  /** One that is answered, so that the service is not taken to be down. */
  const otherWallet = () => ({
    kind: 'wallet' as const,
    addr: world.sandbox.control.state().members[1]?.addr ?? '',
  });

  it('A failed poll is repeated with growing intervals until one succeeds', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet, otherWallet()]);
    const contains = world.wallet.addr;
    world.sandbox.control.addFault({ kind: 'dropped', contains, count: 4 });
    const gaps: number[] = [];
    for (let i = 0; i < 4; i++) {
      await observer.runOnce(world.clock.now());
      await processAll(world.database);
      gaps.push(await nextInMs(world.wallet));
      world.clock.advance(gaps.at(-1) ?? 0);
    }
    // The first of a series is kept.
    expect((await observationsOf(world.wallet)).map(({ result }) => result)).toEqual([
      'inconclusive',
    ]);
    expect(gaps[0]).toBeLessThanOrEqual(1_000);
    expect(gaps[3]).toBeGreaterThanOrEqual(4_000);
    await observer.runOnce(world.clock.now());
    const rows = await world.database.db.sql`
      select failures from tallyhook.targets where addr = ${world.wallet.addr}`;
    expect(rows).toMatchObject([{ failures: 0 }]);
  });

  it('A poll that failed often is repeated within the guaranteed age', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet, otherWallet()]);
    const contains = world.wallet.addr;
    world.sandbox.control.addFault({ kind: 'dropped', contains, count: 12 });
    for (let i = 0; i < 12; i++) {
      await observer.runOnce(world.clock.now());
      await processAll(world.database);
      expect(await nextInMs(world.wallet)).toBeLessThanOrEqual(60_000);
      world.clock.advance(60_000);
    }
  });

  it('A deadline that another daemon received stops polls and probes at once', async () => {
    const [one, other] = [await world.openObserver(1), await world.openObserver(2)];
    await one.add(world.database.db, [world.wallet]);
    const polls = () => world.sandbox.control.state().counts.requests;
    world.sandbox.control.addFault({ kind: 'throttle', method: 'GET', retry_after_s: 60 });
    await one.runOnce(world.clock.now());
    const received = polls();
    world.clock.advance(59_000);
    await one.add(world.database.db, [{ kind: 'contract', contractId: 1n }]);
    expect(await other.runOnce(world.clock.now())).toMatchObject({ observations: 0 });
    await other.probeOnce(world.clock.now());
    expect(polls()).toBe(received);
    world.clock.advance(8_000);
    expect(await other.runOnce(world.clock.now())).toMatchObject({ observations: 2 });
  });

  it('Two observers poll each target once', async () => {
    const observers = [await world.openObserver(1), await world.openObserver(2)];
    await observers[0]?.add(world.database.db, [world.wallet]);
    const passes = await Promise.all(
      observers.map((observer) => observer.runOnce(world.clock.now())),
    );
    expect(passes.map(({ observations }) => observations).sort()).toEqual([0, 1]);
    expect(await observationsOf(world.wallet)).toHaveLength(1);
  });

  it('A claimed target whose poll is not recorded is due again after its lease', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    const claim = () =>
      store.claimDue(world.database.db, world.clock.now(), 10, {
        leaseMs: 10_000,
        steadyFirst: false,
      });
    expect((await claim()).targets).toHaveLength(1);
    expect((await claim()).targets).toEqual([]);
    world.clock.advance(10_001);
    expect((await claim()).targets).toHaveLength(1);
  });

  it('An older observation never replaces the record of a newer one', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    const seen = (startedAt: number, balance: bigint) => ({
      startedAt,
      endedAt: startedAt + 10,
      result: 'seen' as const,
      raw: null,
      record: { addr: world.wallet.addr, balance, status: 1 },
    });
    await observer.runOnce(world.clock.now());
    const now = world.clock.now();
    await observer.noteRead(world.wallet, seen(now + 200, 7n));
    await observer.noteRead(world.wallet, seen(now + 100, 5n));
    const [last] = await listLastRecords(world.database.db, [targetName(world.wallet)]);
    expect(last).toMatchObject({ lastStartedAt: now + 200, lastRecord: { balance: 7 } });
    expect(await observationsOf(world.wallet)).toHaveLength(2);
  });

  it('A passive observation of something that is no target is not recorded', async () => {
    const observer = await world.openObserver();
    const record = { addr: world.wallet.addr, balance: 1n, status: 1 };
    const seen = { result: 'seen' as const, raw: null, startedAt: 1, endedAt: 2 };
    await observer.noteRead(world.wallet, { ...seen, record });
    expect(await observationsOf(world.wallet)).toEqual([]);
  });
});

describe('A target of an open operation', () => {
  const at = (ms: number) => world.clock.now() + ms;
  const give = (state: 'sending' | 'accepted' | 'undecided', sent: number) => ({
    id: `op_${state}_${sent}`,
    kind: 'give' as const,
    state,
    amount: 1n,
    operationNo: 1n,
    toAddr: world.wallet.addr,
    recordedAt: at(sent),
  });
  const record = async (operation: ReturnType<typeof give>, operators: [string, string][] = []) => {
    await putOperations(world.database.owner, [operation]);
    await completeRecords(world.database.owner, {
      feeMode: 'on_top',
      operators: new Map(operators),
    });
  };

  it('is added at once, for an operator with a wallet that wallet too', async () => {
    const observer = await world.openObserver();
    const operatorAddr = world.sandbox.control.state().members[1]?.addr ?? '';
    await record(give('accepted', -5), [['1', operatorAddr]]);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 2 });
    expect(await observationsOf({ kind: 'wallet', addr: operatorAddr })).toHaveLength(1);
  });

  it('is polled, with any begin of its address', async () => {
    const observer = await world.openObserver();
    const addrs = [`0X${'A'.repeat(40)}`, 'T'.repeat(42), `bc1q${'z'.repeat(38)}`];
    for (const [n, toAddr] of addrs.entries())
      await record({ ...give('accepted', -5), id: `op_${n}`, toAddr });
    await observer.runOnce(world.clock.now());
    for (const addr of addrs)
      expect(await observationsOf({ kind: 'wallet', addr: addr.toLowerCase() })).toHaveLength(1);
  });

  it('is polled once after a change, not repeatedly', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    await observer.runOnce(world.clock.now());
    world.clock.advance(5_000);
    await record(give('accepted', -5));
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 1 });
    world.clock.advance(5_000);
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 0 });
  });

  it('is polled again when a poll began before the service had to show the change', async () => {
    const observer = await world.openObserver(1, { readLagMs: 1_000 });
    await observer.add(world.database.db, [world.wallet]);
    await record(give('accepted', -5));
    const polls = async (afterMs: number) => {
      world.clock.advance(afterMs);
      const { observations } = await observer.runOnce(world.clock.now());
      await processAll(world.database);
      return observations;
    };
    expect([await polls(0), await polls(500), await polls(600), await polls(5_000)]).toEqual([
      1, 0, 1, 0,
    ]);
  });

  it('that has many of them is polled before those of one that wait a little longer', async () => {
    const { clock, database, sandbox } = world;
    const settings = { budgetPerS: 1, initialRatePerS: 1 };
    const { upstream } = await upstreamTo(sandbox.url, clock, { settings });
    const observer = observerOf(database.db, clock, upstream);
    const addrs = sandbox.control.state().members.flatMap(({ addr }) => addr ?? []);
    const others = addrs.filter((addr) => addr !== world.wallet.addr);
    await observer.add(
      database.db,
      addrs.map((addr) => ({ kind: 'wallet' as const, addr })),
    );
    const polled: string[] = [];
    const pass = async (afterMs: number) => {
      clock.advance(afterMs);
      const from = sandbox.control.requests(0, 10_000).length;
      await observer.runOnce(clock.now());
      await processAll(database);
      const paths = sandbox.control.requests(from, 10_000).map(({ path, query }) => path + query);
      polled.splice(0, Infinity, ...addrs.filter((addr) => paths.some((p) => p.includes(addr))));
    };
    for (let n = 0; n < addrs.length; n++) await pass(1_000);
    for (const [n, toAddr] of others.entries())
      await record({ ...give('accepted', 0), id: `op_${n}`, toAddr });
    await pass(0);
    for (let n = 0; n < 5; n++) await record({ ...give('accepted', 0), id: `op_many_${n}` });
    await pass(1_000);
    expect([polled.length, polled[0]]).toEqual([1, world.wallet.addr]);
  });

  it('is polled as a steady one while the operation is undecided', async () => {
    const observer = await world.openObserver();
    await observer.add(world.database.db, [world.wallet]);
    await observer.runOnce(world.clock.now());
    world.clock.advance(5_000);
    await record(give('undecided', -5));
    expect(await observer.runOnce(world.clock.now())).toMatchObject({ observations: 0 });
  });
});
