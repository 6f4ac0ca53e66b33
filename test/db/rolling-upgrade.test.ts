/**
 * Two daemons of the last release are replaced one by one by the present program and back, under a
 * load of writes through both, on a database that is migrated while they work.
 */
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingMigrations } from '../../src/db/migrate.ts';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { must } from '../../src/kernel/errors.ts';
import { type FeedEvent, makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';
import { over, useEmptyDatabases } from './empty-database.ts';
import { unpackProgram } from './releases/program.ts';
import { Load } from './releases/upgrade-load.ts';

const versions = globSync('releases/*/', { cwd: import.meta.dirname })
  .map((folder) => basename(folder))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
const LAST = must(versions.at(-1), 'release');
/** Even a starved daemon sends its heartbeat in time. */
const SETTINGS = { ...QUICK, daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 15_000 } };
const UNTIL = { deadlineMs: 90_000 };
/** At each step. */
const WRITES = 40;
const PATHS = ['/hook', '/ordered'];

const print = (line: string) => process.stdout.write(`${line}\n`);

const databases = useEmptyDatabases();
const world = await useWorld();

describe(`Two daemons of release ${LAST}`, () => {
  let former: Awaited<ReturnType<typeof unpackProgram>>;
  let url: string;
  let receiver: Receiver;
  let load: Load;
  const daemons: DaemonProcess[] = [];
  const app = makeApp(() => must(daemons[0], 'daemon').url);

  beforeAll(async () => {
    former = await unpackProgram(LAST);
    [url, receiver] = await Promise.all([databases.make(), startReceiver()]);
    for (const _ of ['first', 'second']) daemons.push(await start(former.root));
    for (const path of PATHS) {
      const ordering = path === '/ordered' ? 'subject' : 'none';
      const endpoint = { url: `${receiver.url}${path}`, event_types: ['*'], ordering };
      const { status, text } = await app.call('POST', '/api/endpoints', endpoint);
      expect(status, text).toBe(201);
    }
    load = new Load(world, daemons);
    await load.more(WRITES);
  });
  afterAll(async () => {
    await load?.stop();
    await Promise.all(daemons.map((daemon) => daemon.kill()));
    await receiver?.close();
    await former?.remove();
  });

  /** @param root of the former program; without it the present one */
  function start(root?: string): Promise<DaemonProcess> {
    const how = root === undefined ? {} : { root };
    return spawnDaemon(environmentOf(url, world.sandbox.url), SETTINGS, how);
  }

  /** Each daemon stops under load when its successor takes writes. */
  async function replaceEach(root?: string): Promise<void> {
    for (const old of [...daemons]) {
      daemons.push(await start(root));
      await load.more(WRITES);
      load.leaving.add(old);
      expect(await old.stop()).toBe(0);
      await load.more(WRITES);
      daemons.splice(daemons.indexOf(old), 1);
    }
  }

  /** What went wrong so far, and how long writes took since the last call. */
  function expectNoOutage(what: string): void {
    const sorted = load.durations.splice(0).sort((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    const times = `${at(0.5)} ms in the middle, ${at(0.99)} of 99 %, ${at(1)} at most`;
    const resent = Object.entries(load.resent).map(([why, n]) => `${n} × ${why}`);
    print(`${what}: ${sorted.length} writes, ${times}; resent so far: ${resent.join(', ') || 0}`);
    expect({ refused: load.refused, unready: load.unready }).toEqual({ refused: [], unready: [] });
    const others = Object.keys(load.resent).filter((why) => !/^0 |shutting_down/.test(why));
    expect(others).toEqual([]);
  }

  /** The ids of events that a path has received, in the order of their first arrival. */
  function receivedAt(path: string): Set<string> {
    const own = receiver.requests.filter((request) => request.path === path);
    return new Set(own.map(({ headers }) => String(headers['webhook-id'])));
  }

  /** Events of which one endpoint has no delivery, without those about endpoints. */
  async function findUndelivered(): Promise<string[]> {
    const ids = (await app.events()).flatMap(({ id, type }) =>
      type.startsWith('endpoint.') ? [] : [id],
    );
    return PATHS.flatMap((path) => {
      const received = receivedAt(path);
      return ids.filter((id) => !received.has(id));
    });
  }

  async function expectAllDelivered(): Promise<void> {
    await until(async () => (await findUndelivered()).length === 0 || undefined, UNTIL);
    expect(await findUndelivered()).toEqual([]);
  }

  it('stay ready, write and deliver while the database is migrated and after it', async () => {
    expectNoOutage('before');
    const startedMs = monotonicMs();
    const missing = await missingMigrations(url);
    const { code, text } = await runCommand(environmentOf(url, world.sandbox.url), 'migrate');
    expect([code, text]).toEqual([
      0,
      missing.map((tag) => `Applied drizzle/${tag}.sql\n`).join(''),
    ]);
    print(`migrated in ${Math.round(monotonicMs() - startedMs)} ms`);
    await load.more(2 * WRITES);
    expectNoOutage('migrated');
  });

  it('are replaced one by one by the present program, and no write is refused', async () => {
    await replaceEach();
    expectNoOutage('replaced');
  });

  it('replace the present program one by one, and no write is refused', async () => {
    await replaceEach(former.root);
    expectNoOutage('gone back');
  });

  it('Through all replacements every answered write is applied once, and every event is delivered', async () => {
    await load.stop();
    const rows = await until(async () => {
      const found = await over(url, ({ sql }) => {
        return sql<{ id: string; amount: bigint; outcome: string; settled: boolean }[]>`
          select id, amount, outcome, settled_at is not null as settled from tallyhook.operations`;
      });
      return found.every(({ settled }) => settled) ? found : undefined;
    }, UNTIL);
    const recorded = must(rows, 'settled operations').map(({ id, amount, outcome }) => {
      return [Number(amount), id, outcome] as const;
    });
    const expected = [...load.answered].map(([n, id]) => [n, id, 'executed'] as const);
    const byAmount = (a: readonly [number, ...string[]], b: readonly [number, ...string[]]) =>
      a[0] - b[0];
    expect(recorded.sort(byAmount)).toEqual(expected.sort(byAmount));
    const effects = world.sandbox.control.effects(0n, 100_000);
    const applied = effects.map(({ amount }) => Number(amount)).sort((a, b) => a - b);
    expect(applied).toEqual(expected.map(([n]) => n));
    await expectAllDelivered();
    const events = await app.events();
    const drifts = events.filter(({ type }) => type === 'wallet.drift_opened');
    expect(drifts).toEqual([]);
    expect(unorderedOf(events, receivedAt('/ordered'))).toEqual([]);
    const once = PATHS.reduce((sum, path) => sum + receivedAt(path).size, 0);
    const twice = receiver.requests.length - once;
    print(`${expected.length} writes, ${events.length} events, ${twice} received twice`);
  });
});

/** Events that were received after a later one of the same operation. */
function unorderedOf(events: readonly FeedEvent[], received: ReadonlySet<string>): string[] {
  const byId = new Map(events.map(({ id, data }) => [id, data]));
  const last = new Map<string, number>();
  return [...received].filter((id) => {
    const { operation_id: operation, subject_seq: seq } = byId.get(id) ?? {};
    if (operation === undefined) return false;
    const isLate = seq < (last.get(operation) ?? 0);
    last.set(operation, seq);
    return isLate;
  });
}
