/** The world of a simulation: the sandbox over HTTP, and daemons in front of it. */

import { makePreImages } from '../../../src/daemon/observations/first-poll.ts';
import { makeRefusals } from '../../../src/db/checks/refusals.ts';
import type { Db } from '../../../src/db/connect.ts';
import type { Daemon } from '../../../src/db/leases.ts';
import type { WriteDeps } from '../../../src/gateway/gateway.ts';
import { ADDRESS_LENGTH, addressKey } from '../../../src/kernel/addresses.ts';
import type { Clock } from '../../../src/kernel/clock.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { makeObserver, makeQuotaStore, type Observer } from '../../../src/observer/observer.ts';
import {
  type EffectSettings,
  findByIdempotencyKey,
  ownWalletsOf,
} from '../../../src/operations/operations.ts';
import { makeReconciler, type Reconciler } from '../../../src/reconciler/reconciler.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { Upstream } from '../../../src/upstream/upstream.ts';
import { CLIENT } from '../../harness/daemon.ts';
import { type ManualClock, manualClock } from '../../harness/manual-clock.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { openStages } from '../../harness/stages.ts';
import { userTokenOf } from '../../harness/user-token.ts';
import { openLedger, START } from '../../ledger/fixture.ts';
import { SETTINGS as RIG_SETTINGS } from '../../reconciler/builders.ts';
import { upstreamTo } from '../../upstream/rig.ts';
import type { Fault } from './faults.ts';
import { type Machine, openMachine } from './machine.ts';
import { openRelay, type Relay } from './relay.ts';
import { type VirtualTime, virtualTime } from './virtual-time.ts';

export interface Plan {
  seed: number;
  /** How many writes are requested. */
  writes: number;
  /** Whether the wallets of operators and fees can be read. */
  mapped: boolean;
  /** Whether outside changes may equal writes. */
  lookAlike: boolean;
  daemons: number;
  /** Apps that write at the same time, each as much as a single one. */
  apps: number;
  /** Wallets of the users of all apps. */
  wallets: number;
  /** How many of them belong to members whose tokens the app has. */
  members: number;
  /** How many writes are without a fault for each one with a fault. */
  unharmed: number;
  /**
   * Without a history: the service is observed from the first write on, and each token write has
   * wallets of its own.
   */
  fresh: boolean;
  /** A few wallets get most of the writes, which come so quickly that these are never quiet. */
  busy: boolean;
  /** The faults that happen beside lost answers, outages and restarts. */
  faults: readonly Fault[];
  /** Each of these faults happens at one step of so many, as a rule. */
  incidentSteps: number;
}

/** Writes between two quiet times, and the longest pause between two steps. */
const PACE = { session: 120, pauseMs: 3_000 };
/** About ten writes a second for ten minutes. */
const BUSY_PACE = { session: 6_000, pauseMs: 150 };

export function paceOf({ busy }: Plan): typeof PACE {
  return busy ? BUSY_PACE : PACE;
}

/** The share of what happens to all that remains at this pace, so that it is as rare in time. */
export function rarity(plan: Plan): number {
  return paceOf(plan).pauseMs / PACE.pauseMs;
}

export const DAY_MS = 86_400_000;
export const CONTRACT = 1n;
export const READ_LAG_MS = 800;
const ALIVE_MS = 15_000;
const SETTINGS = { ...RIG_SETTINGS, steadyMs: 120_000 };
/** What the daemons assume. */
export const READ_LAG_ASSUMED_MS = SETTINGS.readLagMs;
const OBSERVER = {
  ...SETTINGS,
  minGapMs: SETTINGS.steadyMs,
  settledMs: DAY_MS,
  steadyShare: 0.2,
  probeMs: 5_000,
  probeDownMs: 2_000,
  pollTimeoutMs: 5_000,
};
/** Under constant traffic a write is given to people before the traffic ends. */
const BUSY_SETTINGS = { ...SETTINGS, undecidedAfterMs: 180_000 };

const STREAMS = { step: 0, write: 1, pace: 2, incident: 3, answer: 4, 'as-of': 5 };

/**
 * Draws of its own for each step and for each write: one that draws more often than in another run
 * does not shift those of the others.
 */
export function drawsOf({ seed }: Plan, what: keyof typeof STREAMS, n: number): Random {
  const stream = STREAMS[what];
  return seededRandom(Math.imul(seed, 0x01000193) + (stream << 28) + n);
}

export interface SimDaemon {
  daemon: Daemon;
  /** Absent where no machine is ever suspended. */
  machine: Machine | undefined;
  clock: Clock;
  upstream: Upstream;
  observer: Observer;
  reconciler: Reconciler;
  ledger: Awaited<ReturnType<typeof openLedger>>;
  write: WriteDeps;
  /** When its next heartbeat, probe and passes are due, and when its last pass began. */
  due: { heartbeat: number; probe: number; pass: number; stages: number; passed: number };
}

export interface World {
  plan: Plan;
  db: Db;
  clock: ManualClock;
  time: VirtualTime;
  /** The draws of the present step. */
  random: Random;
  /** Draws of the daemons' pace; their number depends on the order of answers. */
  pace: Random;
  /** How many writes were drawn. */
  draws: number;
  /** Names of the writes whose answers lack the app number. */
  appless: Set<string>;
  sandbox: Sandbox;
  relay: Relay;
  books: EffectSettings;
  /** Addresses of users; the first ones are members. */
  users: string[];
  /** Addresses that one write used each. */
  singles: string[];
  memberNos: ReadonlyMap<string, number>;
  /** The access token of each member, by address; it lives for a day. */
  tokens: Map<string, string>;
  daemons: SimDaemon[];
  restarts: number;
  /** How often people acted through stages of their own. */
  stages: number;
  /** A unique text. */
  serial(): string;
  close(): Promise<void>;
}

/** The service, its users' wallets, and daemons that watch most of them. */
export async function buildWorld(db: Db, plan: Plan): Promise<World> {
  const { seed, wallets, members } = plan;
  const clock = manualClock(START + (seed % 100) * 90 * DAY_MS);
  const sandbox = await startSandbox({
    seed,
    clock,
    ...CLIENT,
    switches: { read_lag_ms: READ_LAG_MS, fail_share: 0.05, settle_median_ms: 3_000 },
  });
  const users = Array.from(
    { length: wallets },
    (_, i) => `0x${seed}E${String(i).padStart(40 - String(seed).length - 1, '0')}`,
  );
  // Reads lag behind, so the wallets of single writes exist before these.
  const singlesMax = plan.fresh ? 2 * (plan.writes + 100) : 0;
  const singles = Array.from({ length: singlesMax }, (_, i) => singleAddr(plan, i));
  for (const addr of [...users, ...singles])
    sandbox.control.setWallet(addr, { amt_token: 1_000_000n });
  const memberNos = new Map<string, number>();
  for (const addr of users.slice(0, members)) {
    const member = sandbox.control.addMember({ nickname: `m${memberNos.size}`, addr });
    memberNos.set(addr, Number(member.member_no));
  }
  let serials = 0;
  const world: World = {
    plan,
    db,
    clock,
    sandbox,
    users,
    singles: [],
    memberNos,
    daemons: [],
    restarts: 0,
    stages: 0,
    draws: 0,
    random: drawsOf(plan, 'step', 0),
    pace: drawsOf(plan, 'pace', 0),
    tokens: new Map(),
    appless: new Set(),
    time: virtualTime(clock),
    serial: () => `s${++serials}`,
    relay: await openRelay(sandbox.port),
    books: booksOf(sandbox, plan.mapped),
    close: async () => {
      await world.relay.close();
      await sandbox.close();
    },
  };
  for (let n = 0; n < plan.daemons; n++) world.daemons.push(await openDaemon(world));
  // Some are watched from the start; the others are observed once a write names them.
  const watched = users.filter((_, i) => i % 8 !== 7);
  const refs = watched.map((addr) => ({ kind: 'wallet', addr }) as const);
  await world.daemons[0]?.observer.add(db, refs);
  clock.advance(10_000);
  return world;
}

export async function logInMembers({ sandbox, memberNos, tokens }: World): Promise<void> {
  for (const [addr, memberNo] of memberNos) tokens.set(addr, await userTokenOf(sandbox, memberNo));
}

/** The address of the n-th wallet that one write uses. */
export function singleAddr({ seed }: Plan, n: number): string {
  const head = `0x${seed}F`;
  return head + String(n).padStart(ADDRESS_LENGTH - head.length, '0');
}

/** A daemon that starts on the database as it stands. */
export async function openDaemon(world: World): Promise<SimDaemon> {
  const { db, relay, books, time, plan } = world;
  const suspends = plan.faults.includes('suspend');
  const machine = suspends ? await openMachine(db, world.clock) : undefined;
  const clock = machine?.clock ?? world.clock;
  const id = `dmn_sim_${plan.seed}_${++world.restarts}`;
  // A generator of its own: the simulation's draws must not depend on the order of answers.
  const random = seededRandom(plan.seed * 7_919 + world.restarts);
  const { upstream } = await upstreamTo(relay.url, clock, {
    ...CLIENT,
    quota: makeQuotaStore(db),
    settings: limitsOf(plan),
  });
  const stages = await openStages(db, {
    clock,
    random,
    daemonId: id,
    aliveMs: ALIVE_MS,
    pause: time.pause,
    settings: {
      conflictWaitMs: 2_000,
      refuseConflicts: false,
      waitingMax: 100 * plan.apps,
      queuedSendWithinMs: 5_000,
      effects: books,
    },
  });
  const { daemon, operations, log } = stages;
  const observer = makeObserver({ ...stages, upstream, settings: OBSERVER });
  const settings = plan.busy ? BUSY_SETTINGS : SETTINGS;
  const ownWallets = new Set(ownWalletsOf(books).map(addressKey));
  const preImage = makePreImages({
    db,
    observer,
    upstream,
    clock,
    pause: time.pause,
    log,
    isOwnWallet: (addr) => ownWallets.has(addressKey(addr)),
    firstPollMs: 5_000,
    polls: true,
  });
  return {
    daemon,
    machine,
    clock,
    upstream,
    due: { heartbeat: 0, probe: 0, pass: 0, stages: 0, passed: 0 },
    observer,
    ledger: await openLedger({ db, clock, books, daemonId: `${id}_ledger` }),
    reconciler: makeReconciler({
      ...stages,
      random: seededRandom(plan.seed),
      effectSettings: books,
      settings,
      pendingPolls: observer.pendingPolls,
    }),
    write: {
      operations,
      upstream,
      clock,
      log,
      isAlive: () => true,
      refusals: makeRefusals(),
      onConcluded: () => {},
      writeTimeoutMs: 5_000,
      pause: time.pause,
      retryBudget: { earn() {}, take: () => false },
      serviceDown: async () => false,
      async preImage(route) {
        const image = await preImage(route);
        // A first poll ends before the write is sent.
        world.clock.advance(1);
        return image;
      },
      findByIdempotencyKey: (owner, key) => findByIdempotencyKey(db, owner, key),
    },
  };
}

function limitsOf({ apps }: Plan) {
  return {
    budgetPerS: 100 * apps,
    initialRatePerS: 100 * apps,
    waitMs: 1,
    concurrencyMax: apps > 1 ? 16 : 8,
    forwardsMax: 32 * apps,
  };
}

/** Books whose operators, fees and collection live in wallets that can be read, or in none. */
function booksOf({ control }: Sandbox, mapped: boolean): EffectSettings {
  if (!mapped) return { feeMode: 'on_top', operators: new Map() };
  const operators = new Map(
    control.state().operators.map((o) => [o.operation_no.toString(), o.addr]),
  );
  return {
    feeMode: 'on_top',
    operators,
    feesAddr: operators.get('0'),
    collectionAddr: operators.get('1'),
  };
}
