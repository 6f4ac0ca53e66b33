/**
 * Kills a daemon (SIGKILL) at chosen steps of one write, starts it again on the same database, and
 * compares what the service did with what is recorded. Every await of the write path waits for a
 * piece on the wire, from Postgres or from the service. The daemon is killed as such a piece
 * passes, and the other side then sees it or never sees it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Effect } from '../../../src/sandbox/state/records.ts';
import { type FeedEvent, makeApp } from '../../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../../harness/daemon.ts';
import { type Armed, startTripwire, type Tripwire } from '../../harness/tripwire.ts';
import { type NumberedWrite, numberedWrites } from './numbered-writes.ts';

/** Workers sleep, so that the pieces that pass are those of the write. */
const ASLEEP = {
  daemon: {
    roles: ['gateway', 'api', 'workers'],
    heartbeat_timeout_ms: 1_500,
    worker_interval_ms: 60_000,
    unready_ms: 0,
    drain_ms: 5_000,
  },
  database: { connections: { gateway: 2, workers: 2, people: 1 } },
  observer: {
    steady_interval_ms: 600_000,
    min_gap_ms: 600_000,
    pending_interval_min_ms: 60_000,
    pending_interval_max_ms: 60_000,
    probe_interval_ms: 600_000,
    // While the service is down nothing else passes.
    probe_interval_down_ms: 200,
  },
};

/**
 * On a busy machine a daemon can refuse a write before it reaches the step, for example because its
 * heartbeat came late. The step is then tried again with another write.
 */
const TRIES_MAX = 3;
const TEST_MS = 240_000;

let world: World;
let wires: { database: Tripwire; service: Tripwire };
let writes: Record<string, NumberedWrite>;
let written = 0;

/** Where a kill falls. */
type Point = { wire: 'database' | 'service' } & Omit<Armed, 'trip'>;
type Fits = NonNullable<Armed['fits']>;

const intent: Fits = (text) => text.includes('"reference":"kill-');
const outcome: Fits = (text) => text.includes('"to":"accepted"');
/**
 * The commit that follows on the same connection: the first piece too short to be a statement with
 * values.
 */
const commitOf =
  (statement: Fits): Fits =>
  (text, memory) => {
    if (memory.has('written')) return text.length < 120;
    if (statement(text, memory)) memory.add('written');
    return false;
  };
const database = (fits: Fits, withhold: boolean): Point => {
  return { wire: 'database', direction: 'to', n: 1, fits, withhold };
};

/** The steps of a write, in their order. */
const STEPS: Record<string, Point> = {
  'before the intent is written': database(intent, true),
  // One statement without a transaction around it: it is committed when it was received.
  'after the intent is committed': database(intent, false),
  'before the service gets the write': { wire: 'service', direction: 'to', n: 1, withhold: true },
  'after the service got the write': { wire: 'service', direction: 'to', n: 1, withhold: false },
  'when the answer comes': { wire: 'service', direction: 'from', n: 1, withhold: true },
  // A single statement, too, unless the write came from the request queue.
  'before the outcome is written': database(outcome, true),
  'after the outcome is written': database(outcome, false),
};

const claim: Fits = (text) => text.includes('"to":"sending"');
/** The send that finds the service back; an earlier one may have been refused by maintenance. */
const fromQueue: Fits = (text) =>
  text.startsWith('POST /v1/app/') && world.sandbox.world.settings().window === null;
const send = { wire: 'service', direction: 'to', n: 1, fits: fromQueue } as const;

/** The further steps of a write that waits in the request queue until the service is back. */
const QUEUE_STEPS: Record<string, Point> = {
  'before it is claimed': database(claim, true),
  'before its claim is committed': database(commitOf(claim), true),
  'after its claim is committed': database(commitOf(claim), false),
  'before the service gets it from the queue': { ...send, withhold: true },
  'after the service got it from the queue': { ...send, withhold: false },
  'before its outcome is committed': database(commitOf(outcome), true),
  'after its outcome is committed': database(commitOf(outcome), false),
};

/** The steps that differ most, for the kinds of write that share their path with another. */
const DECISIVE = [
  'after the intent is committed',
  'after the service got the write',
  'before the outcome is written',
  'after the outcome is written',
];

const ALL_STEPS = { ...STEPS, ...QUEUE_STEPS };
const WHICH = {
  'each of its': Object.keys(STEPS),
  'each of its queued': Object.keys(ALL_STEPS),
  'its decisive': DECISIVE,
};

/**
 * The tests of these kinds of write, on one database. With EVERY_AWAIT set, which `npm run kill`
 * does, each kind is also killed at every single await.
 */
export function testKills(kinds: string[], which: keyof typeof WHICH): void {
  beforeAll(open);
  afterAll(close);

  describe.each(kinds)('A %s', (kind) => {
    it(
      `killed at ${which} steps is neither lost nor doubled`,
      async () => {
        for (const step of WHICH[which]) await expectKilledAt(kind, step);
        await expectAgreement(kind);
      },
      TEST_MS,
    );

    if (process.env.EVERY_AWAIT === undefined) return;
    it('killed at every await is neither lost nor doubled', async () => {
      let kills = 0;
      for (const wire of ['database', 'service'] as const) {
        let n = 1;
        while (await killedAt(kind, { wire, direction: 'to', n, withhold: true })) n++;
        kills += n - 1;
      }
      expect(kills).toBeGreaterThan(10);
      await expectAgreement(kind);
    }, 1_800_000);
  });
}

async function open(): Promise<void> {
  world = await createWorld();
  writes = await numberedWrites(world);
  wires = {
    database: await startTripwire(Number(new URL(world.database.url).port)),
    service: await startTripwire(world.sandbox.port),
  };
}

async function close(): Promise<void> {
  await wires?.database.close();
  await wires?.service.close();
  await world?.close();
}

async function expectKilledAt(kind: string, step: string): Promise<void> {
  const point = ALL_STEPS[step];
  if (!point) throw new Error(`there is no step ${step}`);
  for (let tries = 1; tries <= TRIES_MAX; tries++) if (await killedAt(kind, point)) return;
  throw new Error(`no write of kind ${kind} came to the step ${step}`);
}

/**
 * Starts a daemon, writes once, and kills it at that point. False when the write had no such piece.
 */
async function killedAt(kind: string, { wire, ...point }: Point): Promise<boolean> {
  written++;
  writes[kind]?.prepare?.(written);
  const daemon = await startDaemon(throughTripwires(), ASLEEP);
  const app = makeApp(() => daemon.url);
  // The client token and the key are fetched before, so that the pieces are those of the write
  // alone.
  await orOutput(daemon, app.call('GET', `/v1/app/token/account?addr=${world.ada}`));
  let killed: Promise<void> | undefined;
  wires[wire].arm({
    ...point,
    trip: () => {
      killed = daemon.kill();
    },
  });
  await writes[kind]?.write(app, written).catch(() => 'the daemon was killed');
  wires[wire].disarm();
  if (killed) await killed;
  else await daemon.kill();
  return killed !== undefined;
}

/** The same world, reached through the tripwires. */
function throughTripwires(): World {
  const url = new URL(world.database.url);
  url.port = String(wires.database.port);
  return {
    ...world,
    database: { ...world.database, url: url.href },
    sandbox: { ...world.sandbox, url: `http://127.0.0.1:${wires.service.port}` },
  };
}

interface Row {
  id: string;
  state: string;
  reference: string;
  txLogNo: bigint | null;
  txHash: string | null;
}

/**
 * Lets a whole daemon resolve what is open, then compares the service's log with the operations.
 */
async function expectAgreement(name: string): Promise<void> {
  const kind = writes[name]?.kind ?? name;
  const daemon: DaemonProcess = await startDaemon(throughTripwires());
  const app = makeApp(() => daemon.url);
  const open = ['queued', 'sending', 'unknown'];
  for (const id of await idsIn(open)) {
    const ended = ['resolved', 'undecided', 'accepted', 'rejected'].map((s) => `operation.${s}`);
    const isEnd = (e: FeedEvent) => e.data.operation_id === id && ended.includes(e.type);
    await orOutput(daemon, app.until(isEnd, 60_000));
  }
  const rows = await world.database.owner.sql<Row[]>`
    select id, state, reference, tx_log_no, tx_hash from tallyhook.operations where kind = ${kind}`;
  const applied = effectsOf(name, kind);
  for (const [n, effects] of applied) {
    expect(effects, `${kind} ${n} was applied twice`).toHaveLength(1);
    const recorded = rows.filter((row) => row.reference === `kill-${n}.`);
    expect(recorded, `${kind} ${n} was sent but not recorded once`).toHaveLength(1);
    expect(['accepted', 'settled', 'executed', 'undecided', 'unknown']).toContain(
      recorded[0]?.state,
    );
  }
  for (const row of rows) {
    const [effect] = applied.get(Number(/\d+/.exec(row.reference))) ?? [];
    if (['accepted', 'settled', 'executed'].includes(row.state)) expect(effect).toBeDefined();
    if (['rejected', 'not_executed'].includes(row.state)) expect(effect).toBeUndefined();
    if (row.txLogNo !== null) expect(row.txLogNo).toBe(effect?.tx_log_no);
    if (row.txHash !== null) expect(row.txHash).toBe(effect?.tx_hash);
  }
  expect(await daemon.stop()).toBe(0);
}

/** What the service did, by the number of the write. */
function effectsOf(name: string, kind: string): Map<number, Effect[]> {
  const all = world.sandbox.control.effects().filter((effect) => effect.kind === kind);
  return Map.groupBy(all, (effect) => writes[name]?.numberOf(effect) ?? Number.NaN);
}

/** Adds the daemon's output to the error of work that the daemon should have done. */
function orOutput<T>(daemon: DaemonProcess, work: Promise<T>): Promise<T> {
  return work.catch((error: Error) => {
    throw new Error(`${error.message}; the daemon's output:\n${daemon.output()}`);
  });
}

async function idsIn(states: string[]): Promise<string[]> {
  const rows = await world.database.owner.sql<{ id: string }[]>`
    select id from tallyhook.operations where state = any(${states}::text[])`;
  return rows.map((row) => row.id);
}
