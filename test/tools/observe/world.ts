/**
 * The world of a simulation of the observer: the sandbox, in which wallets and tokens change
 * without a write of ours, and daemons that share one database, one budget and one virtual clock.
 */
import type { Db } from '../../../src/db/connect.ts';
import { type Daemon, keepAlive, retireDaemon } from '../../../src/db/leases.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { makeQuotaStore, type Observer } from '../../../src/observer/observer.ts';
import { makeReconciler, type Reconciler } from '../../../src/reconciler/reconciler.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { Upstream } from '../../../src/upstream/upstream.ts';
import { CLIENT } from '../../harness/daemon.ts';
import { type ManualClock, manualClock } from '../../harness/manual-clock.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { openStages } from '../../harness/stages.ts';
import { addr, PLAIN, START } from '../../ledger/fixture.ts';
import { observerOf } from '../../observer/rig.ts';
import { SETTINGS as RECONCILER } from '../../reconciler/builders.ts';
import { upstreamTo } from '../../upstream/rig.ts';
import { type History, newHistory } from './history.ts';

export interface Plan {
  seed: number;
  /** Virtual time in which the world changes and the service fails. */
  hours: number;
  daemons: number;
  wallets: number;
  /** In the watched contract at the start. */
  tokens: number;
  /** The budget of all daemons, in requests per second. */
  perS: number;
}

export const CONTRACT = 1n;
export const HOUR_MS = 3_600_000;
/** Of the guaranteed age; the budget is larger than it takes. */
export const STEADY_MS = 60_000;
/** So that the budget is full only after a silence. */
const MIN_GAP_MS = 12_000;
const ALIVE_MS = 15_000;
/** How long the start of a process takes at least. */
const START_MS = 1_000;
export const BEAT_MS = ALIVE_MS / 3;
/** The list of the contract has several pages. */
const PER_PAGE = 10;

export interface SimDaemon {
  daemon: Daemon;
  upstream: Upstream;
  observer: Observer;
  reconciler: Reconciler;
  beatAt: number;
  /** When its next pass, and its next probe, is due. */
  passAt: number;
  probeAt: number;
}

export interface World {
  plan: Plan;
  db: Db;
  clock: ManualClock;
  /** The draws of what happens. */
  random: Random;
  /** Draws of the daemons' pace; their number depends on the answers. */
  pace: Random;
  sandbox: Sandbox;
  daemons: SimDaemon[];
  /** How many daemons have started. */
  starts: number;
  history: History;
  wallets: string[];
}

export async function buildWorld(db: Db, plan: Plan): Promise<World> {
  const clock = manualClock(START);
  const sandbox = await startSandbox({
    seed: plan.seed,
    clock,
    ...CLIENT,
    switches: { per_page_max: PER_PAGE, list_order: 'owned_desc' },
  });
  const wallets = Array.from({ length: plan.wallets }, (_, n) => addr(n + 1));
  const world: World = {
    plan,
    db,
    clock,
    sandbox,
    wallets,
    daemons: [],
    starts: 0,
    random: seededRandom(plan.seed),
    pace: seededRandom(plan.seed + 0x10000),
    history: newHistory(),
  };
  for (const wallet of wallets) sandbox.control.setWallet(wallet, { amt_token: 10n ** 60n });
  for (let n = 0; n < plan.tokens; n++)
    sandbox.control.setToken(CONTRACT, BigInt(10_000 + n), { owner: addr(1) });
  for (let n = 0; n < plan.daemons; n++) world.daemons.push(await openDaemon(world));
  const refs = wallets.map((one) => ({ kind: 'wallet', addr: one }) as const);
  const contract = { kind: 'contract', contractId: CONTRACT } as const;
  await world.daemons[0]?.observer.watch([...refs, contract], 'ops');
  return world;
}

/** A daemon that starts on the database as it stands. */
export async function openDaemon(world: World): Promise<SimDaemon> {
  const { db, clock, sandbox, plan } = world;
  const n = ++world.starts;
  const id = `dmn_sim_${n}`;
  const random = seededRandom(plan.seed * 7_919 + n);
  const { upstream } = await upstreamTo(sandbox.url, clock, {
    ...CLIENT,
    random,
    quota: makeQuotaStore(db),
    // One poll at a time, so that the order of requests is the same in every run.
    settings: { budgetPerS: plan.perS, initialRatePerS: plan.perS, waitMs: 1, concurrencyMax: 1 },
  });
  const settings = {
    steadyMs: STEADY_MS,
    minGapMs: MIN_GAP_MS,
    readLagMs: 1_000,
    steadyShare: 0.2,
  };
  const observer = observerOf(db, clock, upstream, plan.seed + n, settings);
  const stages = await openStages(db, {
    clock,
    random,
    daemonId: id,
    aliveMs: ALIVE_MS,
    settings: { effects: PLAIN },
  });
  const { daemon } = stages;
  const reconciler = makeReconciler({
    ...stages,
    effectSettings: PLAIN,
    settings: RECONCILER,
    pendingPolls: observer.pendingPolls,
  });
  const started = { daemon, upstream, observer, reconciler };
  const passAt = clock.now() + START_MS;
  const sim = { ...started, beatAt: 0, passAt, probeAt: passAt };
  await beat(world, sim);
  return sim;
}

/** What the heartbeat of a daemon does. */
export async function beat({ db, clock }: World, sim: SimDaemon): Promise<void> {
  const living = await keepAlive(db, sim.daemon, clock.now(), ALIVE_MS);
  sim.upstream.share({ pollers: living.length, appPerS: 0 });
  await sim.upstream.syncQuota();
  sim.beatAt = clock.now() + BEAT_MS;
}

/** Ends a daemon and starts another in its place; one that is killed says nothing before. */
export async function restart(world: World, place: number, killed: boolean): Promise<void> {
  const former = world.daemons[place];
  if (former && !killed) await retireDaemon(world.db, former.daemon, world.clock.now());
  await former?.upstream.close();
  world.daemons[place] = await openDaemon(world);
}
