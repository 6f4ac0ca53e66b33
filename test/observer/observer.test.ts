import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import {
  availableSince,
  listLastRecords,
  listObservations,
  makeObserver,
  type TargetRef,
  targetName,
} from '../../src/observer/observer.ts';
import * as store from '../../src/observer/store.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { putOperations } from '../ledger/fixture.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';

const SETTINGS = {
  ...{ steadyMs: 60_000, pendingMinMs: 1_000, pendingMaxMs: 30_000, steadyShare: 1 },
  ...{ probeMs: 30_000, probeDownMs: 5_000, pollTimeoutMs: 5_000 },
};

let database: TestDatabase;
let sandbox: Sandbox;
let clock: ManualClock;
let addr: string;
let wallet: TargetRef;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  sandbox = await startSandbox({ seed: 1, clock, clientId: 'client', clientSecret: 'hush-hush' });
  addr = sandbox.control.state().members[0]?.addr ?? '';
  wallet = { kind: 'wallet', addr };
  clock.advance(10_000);
});
afterEach(async () => {
  await closeAll();
  await sandbox.close();
  await database.drop();
});

async function openObserver(seed = 1) {
  const { db } = database;
  const { upstream } = await upstreamTo(sandbox.url, clock);
  const random = seededRandom(seed);
  const ids = makeIds(clock, random);
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const metrics = makeMetrics();
  const deps = { db, clock, random, ids, upstream, outbox, metrics, settings: SETTINGS };
  return makeObserver(deps);
}

const looksAt = (ref: TargetRef) => listObservations(database.db, targetName(ref), 100);
async function nextInMs(ref: TargetRef): Promise<number> {
  const rows = await database.db.sql<{ at: number }[]>`
    select next_poll_at as at from tallyhook.targets where name = ${targetName(ref)}`;
  return (rows[0]?.at ?? Number.NaN) - clock.now();
}
async function eventTypes(): Promise<string[]> {
  const rows = await database.db.sql<{ type: string }[]>`
    select type from tallyhook.events order by recorded_at, subject_seq`;
  return rows.map(({ type }) => type);
}

describe('Looking', () => {
  it('What is added is looked at, recorded, and due again after the steady gap', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
    const [observation] = await looksAt(wallet);
    expect(observation).toMatchObject({ result: 'seen', record: { addr, balance: 1_000 } });
    const gap = await nextInMs(wallet);
    expect(Math.abs(gap - 60_000)).toBeLessThanOrEqual(3_000);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 0 });
    const [seen] = await listLastRecords(database.db, [targetName(wallet)]);
    expect(seen?.lastStartedAt).toBe(observation?.startedAt);
  });

  it('A wallet that is not there is absent, and no pre-image', async () => {
    const observer = await openObserver();
    const nobody: TargetRef = { kind: 'wallet', addr: `0x${'0'.repeat(40)}` };
    await observer.add(database.db, [nobody]);
    await observer.runOnce(clock.now());
    expect(await looksAt(nobody)).toMatchObject([{ result: 'absent', record: null }]);
    expect(await listLastRecords(database.db, [targetName(nobody)])).toEqual([]);
  });

  it('A look that fails is due again later each time, until one succeeds', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    sandbox.control.addFault({ kind: 'dropped', method: 'GET', count: 4 });
    const gaps: number[] = [];
    for (let i = 0; i < 4; i++) {
      await observer.runOnce(clock.now());
      gaps.push(await nextInMs(wallet));
      clock.advance(gaps.at(-1) ?? 0);
    }
    expect((await looksAt(wallet)).map(({ result }) => result)).toEqual(
      Array.from({ length: 4 }, () => 'inconclusive'),
    );
    expect(gaps[0]).toBeLessThanOrEqual(1_000);
    expect(gaps[3]).toBeGreaterThanOrEqual(4_000);
    await observer.runOnce(clock.now());
    const rows = await database.db.sql`select failures from tallyhook.targets`;
    expect(rows).toMatchObject([{ failures: 0 }]);
  });

  it('Two observers look at each object once', async () => {
    const observers = [await openObserver(1), await openObserver(2)];
    await observers[0]?.add(database.db, [wallet]);
    const passes = await Promise.all(observers.map((observer) => observer.runOnce(clock.now())));
    expect(passes.map(({ observations }) => observations).sort()).toEqual([0, 1]);
    expect(await looksAt(wallet)).toHaveLength(1);
  });

  it('A claim that is never settled falls due again after its lease', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    const claim = () =>
      store.claimDue(database.db, clock.now(), 10, { leaseMs: 10_000, steadyFirst: false });
    expect(await claim()).toHaveLength(1);
    expect(await claim()).toEqual([]);
    clock.advance(10_001);
    expect(await claim()).toHaveLength(1);
  });

  it('An older look never replaces a newer one as what was last seen', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    const seen = (startedAt: number, balance: bigint) => ({
      ...{ startedAt, endedAt: startedAt + 10, result: 'seen' as const, raw: null },
      record: { addr, balance, status: 1 },
    });
    await observer.runOnce(clock.now());
    const now = clock.now();
    await observer.noteRead(wallet, seen(now + 200, 7n));
    await observer.noteRead(wallet, seen(now + 100, 5n));
    const [last] = await listLastRecords(database.db, [targetName(wallet)]);
    expect(last).toMatchObject({ lastStartedAt: now + 200, lastRecord: { balance: 7 } });
    expect(await looksAt(wallet)).toHaveLength(3);
  });

  it('A read of an app at what is not observed is not recorded', async () => {
    const observer = await openObserver();
    const record = { addr, balance: 1n, status: 1 };
    const seen = { result: 'seen' as const, raw: null, startedAt: 1, endedAt: 2 };
    await observer.noteRead(wallet, { ...seen, record });
    expect(await looksAt(wallet)).toEqual([]);
  });
});

describe('What operations touch', () => {
  const at = (ms: number) => clock.now() + ms;
  const give = (state: 'sending' | 'accepted' | 'undecided', sent: number) => ({
    ...{ id: `op_${state}_${sent}`, kind: 'give' as const, state, amount: 1n, operationNo: 1n },
    ...{ toAddr: addr, recordedAt: at(sent) },
  });

  it('Is put under observation at once', async () => {
    const observer = await openObserver();
    await putOperations(database.owner, [give('accepted', -5)]);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
  });

  it('Is looked at once after news, and not again and again', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.runOnce(clock.now());
    clock.advance(5_000);
    await putOperations(database.owner, [give('accepted', -5)]);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
    clock.advance(5_000);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 0 });
  });

  it('Is left to the steady gap while people decide', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.runOnce(clock.now());
    clock.advance(5_000);
    await putOperations(database.owner, [give('undecided', -5)]);
    expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 0 });
  });
});

describe('Probing', () => {
  it('A look that is told of maintenance brings the probe at once', async () => {
    const observer = await openObserver();
    await observer.add(database.db, [wallet]);
    await observer.probeOnce(clock.now());
    sandbox.control.maintenance({ state: 'on' });
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    expect(await availableSince(database.db)).toBe(Number.POSITIVE_INFINITY);
    expect(await eventTypes()).toEqual(['service.maintenance_started']);
  });

  it('Who is told of maintenance by a look goes on probing, and never asks to come again at once', async () => {
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

  it('Maintenance is told once, stops all looks, and its end is told', async () => {
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

  it('An announcement is told with its words, and looking goes on', async () => {
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

  it('Probes of two daemons at once tell each change once, and count one failure', async () => {
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

  it('Three probes without an answer make it unreachable, and an answer recovers it', async () => {
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
