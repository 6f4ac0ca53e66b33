/**
 * Promise 10. The daemon is killed (SIGKILL) at every await of one write of each kind, and started again
 * on the same database. Every await of the write path lies between two pieces on the wire: to Postgres
 * and back, to the service and back; so it is killed at each piece, once before the other side sees it and
 * once after. Then the service's own log and the journal must agree.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { startTripwire, type Tripwire } from '../harness/tripwire.ts';

/** Workers sleep, so that the pieces that pass are those of the write. */
const ASLEEP = {
  daemon: { alive_ms: 1_500, poll_ms: 60_000, drain_ms: 5_000 },
  observer: {
    steady_ms: 600_000,
    pending_min_ms: 60_000,
    pending_max_ms: 60_000,
    probe_ms: 600_000,
    probe_down_ms: 600_000,
  },
};

let world: World;
let database: Tripwire;
let service: Tripwire;

beforeAll(async () => {
  world = await createWorld();
  database = await startTripwire(Number(new URL(world.database.url).port));
  service = await startTripwire(world.sandbox.port);
});

afterAll(async () => {
  await database?.close();
  await service?.close();
  await world?.close();
});

/** Each kind of write, told apart by its number: the amount, or the token. */
const KINDS: Record<string, (app: App, n: number) => Promise<unknown>> = {
  give: (app, n) => app.give(world.ada, 1_000 + n),
  receive_from: (app, n) => app.receiveFrom(world.ada, 1 + n),
  transfer: (app, n) => app.transfer(world.ada, world.ben, 1 + n),
  mint: (app, n) => app.mint(world.ada, 1_000 + n),
};

describe.each(Object.keys(KINDS))('a %s killed at every await', (kind) => {
  it('loses nothing and doubles nothing', async () => {
    const write = KINDS[kind] as (app: App, n: number) => Promise<unknown>;
    let n = 0;
    let kills = 0;
    for (const wire of [database, service]) {
      for (const direction of ['to', 'from'] as const) {
        for (let piece = 1; ; piece++) {
          const tripped = await killedAt(wire, { piece, direction }, (app) => write(app, ++n));
          if (!tripped) break;
          kills++;
        }
      }
    }
    expect(kills).toBeGreaterThan(10);
    await expectAgreement(kind);
  }, 120_000);
});

/** Starts a daemon, writes once, and kills it at that piece. False when the write had no such piece. */
async function killedAt(
  wire: Tripwire,
  at: { piece: number; direction: 'to' | 'from' },
  write: (app: App) => Promise<unknown>,
): Promise<boolean> {
  const daemon = await startDaemon(throughTripwires(), ASLEEP);
  const app = makeApp(() => daemon.url);
  // The client token and the key are fetched before, so that the pieces are those of the write alone.
  await app.call('GET', `/v1/app/token/account?addr=${world.ada}`);
  let killed: Promise<void> | undefined;
  wire.arm({
    n: at.piece,
    direction: at.direction,
    withhold: at.direction === 'to' ? at.piece % 2 === 0 : true,
    trip: () => {
      killed = daemon.kill();
    },
  });
  await write(app).catch(() => 'the daemon is gone');
  wire.disarm();
  if (killed) await killed;
  else await daemon.kill();
  return killed !== undefined;
}

/** The same world, reached through the tripwires. */
function throughTripwires(): World {
  const url = new URL(world.database.url);
  url.port = String(database.port);
  return {
    ...world,
    database: { ...world.database, url: url.href },
    sandbox: { ...world.sandbox, url: `http://127.0.0.1:${service.port}` },
  };
}

interface Row {
  id: string;
  state: string;
  number: bigint;
  tx_log_no: bigint | null;
  tx_hash: string | null;
}

/** Lets a whole daemon put everything in order, then compares the service's log with the journal. */
async function expectAgreement(kind: string): Promise<void> {
  const daemon: DaemonProcess = await startDaemon(throughTripwires());
  const app = makeApp(() => daemon.url);
  const open = ['recorded', 'sending', 'unknown'];
  for (const id of await idsIn(open)) {
    await app.until((e) => {
      const ended = [
        'operation.resolved',
        'operation.undecided',
        'operation.accepted',
        'operation.rejected',
      ];
      return e.data.operation_id === id && ended.includes(e.type);
    });
  }
  const rows = await world.database.owner.sql<Row[]>`
    select id, state, coalesce(amount, token_id) as number, tx_log_no, tx_hash
    from tallyhook.operations where kind = ${kind}`;
  const effects = world.sandbox.control.effects().filter((effect) => effect.kind === kind);
  for (const effect of effects) {
    const number = effect.amount ?? effect.token_id;
    const same = effects.filter((other) => (other.amount ?? other.token_id) === number);
    expect(same, `${kind} ${number} was applied twice`).toHaveLength(1);
    const recorded = rows.filter((row) => row.number === number);
    expect(recorded, `${kind} ${number} was sent but not recorded once`).toHaveLength(1);
    expect(['accepted', 'settled', 'executed', 'undecided', 'unknown']).toContain(
      recorded[0]?.state,
    );
  }
  for (const row of rows) {
    const effect = effects.find((e) => (e.amount ?? e.token_id) === row.number);
    if (['accepted', 'settled', 'executed'].includes(row.state)) expect(effect).toBeDefined();
    if (['rejected', 'not_executed'].includes(row.state)) expect(effect).toBeUndefined();
    if (row.tx_log_no !== null) expect(row.tx_log_no).toBe(effect?.tx_log_no);
    if (row.tx_hash !== null) expect(row.tx_hash).toBe(effect?.tx_hash);
  }
  expect(await daemon.stop()).toBe(0);
}

async function idsIn(states: string[]): Promise<string[]> {
  const rows = await world.database.owner.sql<{ id: string }[]>`
    select id from tallyhook.operations where state = any(${states}::text[])`;
  return rows.map((row) => row.id);
}
