/** Daemons, leases with fencing tokens, and stored settings of the installation. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  acquireLease,
  assertProved,
  type Daemon,
  fixInstallationSetting,
  keepAlive,
  listLost,
  lockLease,
  registerDaemon,
  retireDaemon,
  setInstallationSetting,
} from '../../src/db/leases.ts';
import type { Role } from '../../src/resources/admin/status.ts';
import { useDatabase } from '../harness/database.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

const ALIVE_MS = 60_000;
const TTL_MS = 10_000;

const database = await useDatabase();
let clock: ManualClock;
let a: Daemon;
let b: Daemon;
let round = 0;

beforeEach(async () => {
  round++;
  // Later than all rows of earlier tests.
  clock = manualClock(Date.UTC(2026, round, 1));
  a = await registerDaemon(database.db, `dmn_a${round}`, clock.now(), ALIVE_MS);
  b = await registerDaemon(database.db, `dmn_b${round}`, clock.now(), ALIVE_MS);
});

const hold = (daemon: Daemon, name = `work${round}`) =>
  acquireLease(database.db, name, daemon, clock.now(), TTL_MS);
const fenced = (fence: bigint, name = `work${round}`) =>
  database.db.begin((tx) => lockLease(tx, name, fence));
const lost = { code: 'lease_lost' };
const unproved = { code: 'database_unproved' };

describe('Daemons', () => {
  it('are registered once', async () => {
    await expect(registerDaemon(database.db, a.id, clock.now(), ALIVE_MS)).rejects.toThrow();
  });

  it('are counted as alive until their heartbeat times out', async () => {
    const sign = async (daemon: Daemon) =>
      (await keepAlive(database.db, daemon, clock.now(), ALIVE_MS)).length;
    expect(await sign(a)).toBe(2);
    clock.advance(ALIVE_MS - 1);
    expect(await sign(a)).toBe(2);
    clock.advance(1);
    expect(await sign(a)).toBe(1);
    expect(await sign(b)).toBe(2);
  });

  it('say with each heartbeat what they do, and hear it of the living', async () => {
    const beat = (daemon: Daemon, role: Role, appPerS: number) =>
      keepAlive(database.db, daemon, clock.now(), ALIVE_MS, { roles: [role], appPerS });
    await beat(a, 'gateway', 40);
    const both = await beat(b, 'workers', 0.5);
    expect(both.map(({ roles, appPerS }) => ({ roles, appPerS }))).toEqual([
      { roles: ['workers'], appPerS: 0.5 },
      { roles: ['gateway'], appPerS: 40 },
    ]);
    clock.advance(ALIVE_MS);
    expect(await beat(b, 'workers', 0)).toMatchObject([{ roles: ['workers'], appPerS: 0 }]);
  });

  it('are lost when their heartbeat times out, unless they said that they end or never do', async () => {
    const { sql } = database.owner;
    const started = clock.now();
    const old = `dmn_c${round}`;
    // As a program of 0.2.0 registers and retires itself.
    await sql`
      insert into tallyhook.daemons (id, started_at, alive_until, roles, server_start, data_file)
      select ${old}, started_at, alive_until, roles, server_start, data_file
      from tallyhook.daemons where id = ${a.id}`;
    await sql`update tallyhook.daemons set alive_until = started_at where id = ${old}`;
    await retireDaemon(database.db, a, clock.now());
    clock.advance(ALIVE_MS);
    const lost = await listLost(database.db, started - 1, clock.now());
    expect(lost.map(({ id }) => id)).toEqual([b.id]);
  });

  it('may commit only while they count as alive', async () => {
    const alive = () => database.db.begin((tx) => assertProved(tx, a, clock.now()));
    await alive();
    clock.advance(ALIVE_MS);
    await expect(alive()).rejects.toMatchObject(unproved);
    await keepAlive(database.db, a, clock.now(), ALIVE_MS);
    await alive();
    await retireDaemon(database.db, a, clock.now());
    await expect(alive()).rejects.toMatchObject(unproved);
  });
});

it('A daemon whose registration was lost in a failover is registered again by its heartbeat', async () => {
  const alive = () => database.db.begin((tx) => assertProved(tx, a, clock.now()));
  await database.owner.sql`delete from tallyhook.daemons where id = ${a.id}`;
  await expect(alive()).rejects.toMatchObject(unproved);
  expect(await keepAlive(database.db, a, clock.now(), ALIVE_MS)).toHaveLength(2);
  await alive();
});

describe('A lease', () => {
  it('is held and renewed by one daemon, and taken by another only after it has expired', async () => {
    expect(await hold(a)).toBe(1n);
    expect(await hold(b)).toBeUndefined();
    clock.advance(TTL_MS - 1);
    expect(await hold(a)).toBe(1n);
    clock.advance(TTL_MS - 1);
    expect(await hold(b)).toBeUndefined();
    clock.advance(1);
    expect(await hold(b)).toBe(2n);
    expect(await hold(a)).toBeUndefined();
  });

  it('taken by another daemon is lost for the first holder', async () => {
    expect(await hold(a)).toBe(1n);
    await fenced(1n);
    clock.advance(TTL_MS);
    // Expired but not taken: the holder may still write.
    await fenced(1n);
    expect(await hold(b)).toBe(2n);
    await expect(fenced(1n)).rejects.toMatchObject(lost);
    await fenced(2n);
    await expect(fenced(1n, 'never')).rejects.toMatchObject(lost);
  });

  it('of a daemon that no longer counts as alive is free before it expires', async () => {
    const doomed = await registerDaemon(database.db, `dmn_c${round}`, clock.now(), 1_000);
    expect(await hold(doomed)).toBe(1n);
    clock.advance(999);
    expect(await hold(a)).toBeUndefined();
    clock.advance(1);
    expect(await hold(a)).toBe(2n);
    await expect(fenced(1n)).rejects.toMatchObject(lost);
  });

  it('of a retired daemon is free at once, with a higher fencing token', async () => {
    expect(await hold(a)).toBe(1n);
    await retireDaemon(database.db, a, clock.now());
    expect(await hold(b)).toBe(2n);
    await expect(fenced(1n)).rejects.toMatchObject(lost);
  });

  it('stays held when another daemon retires', async () => {
    await hold(a);
    await retireDaemon(database.db, b, clock.now());
    expect(await hold(b)).toBeUndefined();
  });

  it('goes to one of twenty daemons that request it at once', async () => {
    const daemons = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        registerDaemon(database.db, `dmn_${round}_${i}`, clock.now(), ALIVE_MS),
      ),
    );
    const fences = await Promise.all(daemons.map((daemon) => hold(daemon)));
    expect(fences.filter((fence) => fence !== undefined)).toEqual([1n]);
    clock.advance(TTL_MS);
    const again = await Promise.all(daemons.map((daemon) => hold(daemon)));
    expect(again.filter((fence) => fence !== undefined)).toHaveLength(1);
  });

  it('cannot be taken while a transaction holds its lock', async () => {
    expect(await hold(a)).toBe(1n);
    clock.advance(TTL_MS);
    let taken: Promise<bigint | undefined> | undefined;
    const order: string[] = [];
    await database.db.begin(async (tx) => {
      await lockLease(tx, `work${round}`, 1n);
      taken = hold(b).then((fence) => {
        order.push('taken');
        return fence;
      });
      await untilLockWaits(database.owner);
      order.push('written');
    });
    expect(await taken).toBe(2n);
    expect(order).toEqual(['written', 'taken']);
  });
});

describe('Stored settings of the installation', () => {
  it('that are fixed keep their first value under concurrency', async () => {
    const name = `service${round}`;
    const values = await Promise.all(
      ['one', 'two', 'three'].map((v) => fixInstallationSetting(database.db, name, v, clock.now())),
    );
    expect(new Set(values).size).toBe(1);
    expect(await fixInstallationSetting(database.db, name, 'four', clock.now())).toBe(values[0]);
  });

  it('that are set have their latest value', async () => {
    const name = `books${round}`;
    await setInstallationSetting(database.db, name, 'old', clock.now());
    await setInstallationSetting(database.db, name, 'new', clock.now());
    expect(await fixInstallationSetting(database.db, name, 'other', clock.now())).toBe('new');
  });
});
