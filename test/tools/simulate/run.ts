/**
 * Runs a simulation: apps write, answers are lost, the service and daemons fail and restart, and
 * wallets and tokens are changed elsewhere.
 */
import { keepAlive } from '../../../src/db/leases.ts';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { isoText } from '../../../src/kernel/clock.ts';
import { expedite, targetName } from '../../../src/observer/observer.ts';
import { listOperations, type Move } from '../../../src/operations/operations.ts';
import type { Received } from '../../../src/sandbox/state/request-log.ts';
import { runDry } from '../../ledger/fixture.ts';
import { endIncidents, happen, type Incidents, incidentsDue, noIncidents } from './incidents.ts';
import { reportLate, reportOwn } from './late-reports.ts';
import {
  badGateway,
  changeToken,
  changeWallet,
  type Outside,
  shiftingPages,
  staleReads,
} from './outside.ts';
import { harvest, tokenEffectsOf } from './truth.ts';
import {
  DAY_MS,
  drawsOf,
  logInMembers,
  openDaemon,
  paceOf,
  rarity,
  type SimDaemon,
  type World,
} from './world.ts';
import { type RequestedWrite, requestWrite } from './writes.ts';

export interface Simulation {
  requested: RequestedWrite[];
  outside: Outside[];
  /** What the service received of each write, by its name. */
  received: Map<string, Received[]>;
  /** When the service was asked for each wallet and answered truly, by key of its address. */
  polls: Map<string, number[]>;
  /** When the service refused to show a wallet that had vanished. */
  refused: Map<string, number[]>;
  events: Record<string, number>;
  /** When daemons were killed. */
  killed: number[];
  incidents: Incidents;
  /** The number of the newest request that was kept. */
  harvested: number;
}

const ALIVE_MS = 15_000;
/** Below this share of the draws of a step an app acts; above it something happens to all. */
const ACTS = 0.965;
/** A fault without a duration of its own is over by then. */
const STOPPED_MS = 15_000;
/** Bound of the wait for unknown operations before a rest, in rounds. */
const WAITS_MAX = 60;
const WAIT_MS = 20_000;

/** Runs until all writes are requested and none is open except undecided ones. */
export async function runSimulation(world: World, print: (line: string) => void = () => {}) {
  const { plan, clock } = world;
  const simulation: Simulation = {
    requested: [],
    outside: [],
    received: new Map(),
    polls: new Map(),
    refused: new Map(),
    events: {},
    killed: [],
    incidents: noIncidents(),
    harvested: 0,
  };
  const session = paceOf(plan).session * plan.apps;
  if (!plan.fresh) {
    await flow(world, 30_000, QUIET_STEP_MS);
    clock.advance(60 * DAY_MS);
  }
  await logInMembers(world);
  await settleDown(world, simulation, plan.fresh ? 1 : 4);
  let rested = 0;
  for (let n = 1; simulation.requested.length < plan.writes; n++) {
    world.random = drawsOf(plan, 'step', n);
    await step(world, simulation);
    for (const due of incidentsDue(plan, n)) await happen(world, simulation, due);
    if (world.draws - rested < session) continue;
    rested = world.draws;
    endIncidents(world, simulation, 'services');
    await settleDown(world, simulation, 10);
    await untilNoneIsUnknown(world, simulation);
    await decide(world, simulation);
    await reportAtRest(world, simulation);
    await (plan.fresh ? retireSingles(world) : rest(world));
    if (rested % 1_000 < session) print(`${rested} writes`);
  }
  endIncidents(world, simulation, 'all');
  if (plan.fresh) await recallSingles(world);
  await settleDown(world, simulation, 20);
  await untilNoneIsUnknown(world, simulation);
  await decide(world, simulation);
  // Failed polls are retried after minutes; every wallet must be observed at the end.
  await settleDown(world, simulation, 40, WAIT_MS);
  return simulation;
}

async function reportAtRest(world: World, simulation: Simulation): Promise<void> {
  if (!world.plan.lookAlike) await reportLate(world, simulation.outside);
  if (world.plan.faults.includes('answers')) await reportOwn(world, simulation);
}

async function untilNoneIsUnknown(world: World, simulation: Simulation): Promise<void> {
  for (let more = WAITS_MAX; more > 0 && (await countUnknown(world)) > 0; more--)
    await settleDown(world, simulation, 1, WAIT_MS);
}

async function countUnknown({ db }: World): Promise<number> {
  const rows = await db.sql<{ count: number }[]>`
    select count(*)::int as count from tallyhook.operations where state in ('sending', 'unknown')`;
  return rows[0]?.count ?? 0;
}

async function step(world: World, simulation: Simulation): Promise<void> {
  const { random, time, sandbox, plan } = world;
  const below = (n: number) => Math.floor(random.unit() * n);
  for (let more = plan.apps - 1; more > 0; more--) act(world, simulation, random.unit() * ACTS);
  const dice = random.unit();
  const from = world.clock.now();
  const happened = (name: string, ms = STOPPED_MS) => {
    simulation.events[name] = (simulation.events[name] ?? 0) + 1;
    simulation.incidents.stopped.push({ from, until: from + ms });
  };
  // As often in time at any pace: a service that is never available shows nothing.
  const happens = dice >= ACTS && random.unit() < rarity(plan);
  if (!happens) act(world, simulation, dice < ACTS ? dice : 0);
  else if (dice < 0.97) shiftingPages(world);
  else if (dice < 0.975) {
    const duration_ms = 30_000 + below(90_000);
    sandbox.control.maintenance({ state: 'on', duration_ms });
    happened('maintenance', duration_ms);
  } else if (dice < 0.98) {
    badGateway(world);
    happened('bad gateway');
  } else if (dice < 0.985) {
    await outage(world, simulation);
    happened('outage');
  } else if (dice < 0.99) {
    await restart(world, simulation);
    happened('restart');
  }
  await time.settled();
  await flow(world, 20 + below(paceOf(world.plan).pauseMs));
  harvest(world, simulation);
}

/** What an app does, or happens to its wallets and tokens. */
function act(world: World, simulation: Simulation, dice: number): void {
  const below = (n: number) => Math.floor(world.random.unit() * n);
  if (dice < 0.88) {
    for (let n = 1 + (below(4) === 0 ? below(3) : 0); n > 0; n--)
      requestWrite(world, simulation.requested);
  } else if (dice < 0.92)
    simulation.outside.push(...changeWallet(world, simulation.outside, simulation.requested));
  else if (dice < 0.95) changeToken(world);
  else staleReads(world);
}

/** The service refuses connections for a while; apps continue to write. */
async function outage(world: World, simulation: Simulation): Promise<void> {
  await world.relay.down();
  for (let n = 0; n < 3; n++) {
    for (let more = world.plan.apps; more > 0; more--) requestWrite(world, simulation.requested);
    await world.time.settled();
    await flow(world, 4_000);
  }
  await world.relay.up();
}

/** Kills a daemon with writes in flight and starts another one on the same database. */
async function restart(world: World, simulation: Simulation): Promise<void> {
  const { time, daemons, random } = world;
  requestWrite(world, simulation.requested, 'before_send');
  requestWrite(world, simulation.requested, 'before_conclude');
  await time.settled();
  time.forget();
  simulation.killed.push(world.clock.now());
  const at = Math.floor(random.unit() * daemons.length);
  daemons.splice(at, 1, await openDaemon(world));
}

/** Lets time pass while the daemons work; at least `stepMs` between two passes of each. */
async function flow(world: World, ms: number, stepMs = STEP_MS): Promise<void> {
  const { clock, time, daemons } = world;
  const until = clock.now() + ms;
  // What was written since the last pass may make a poll due earlier.
  for (const { due } of daemons) due.pass = Math.min(due.pass, due.passed + stepMs);
  do {
    for (const daemon of daemons) {
      if (clock.now() < daemon.due.pass) continue;
      if (daemon.machine?.isSuspended()) {
        daemon.due.pass = clock.now() + stepMs;
        continue;
      }
      await keepUp(world, daemon);
      daemon.due.passed = clock.now();
      daemon.due.pass = Math.max(await pass(world, daemon), clock.now() + stepMs);
      await time.settled();
    }
    const nextAt = Math.min(until, ...daemons.map(({ due }) => due.pass));
    await time.advance(Math.max(1, Math.ceil(nextAt - clock.now())));
  } while (clock.now() < until);
}

/** As soon as a daemon looks for what its apps have written. */
export const STEP_MS = 250;
/** While no app writes. */
const QUIET_STEP_MS = 1_000;
/** How often a daemon does what does not depend on its polls. */
const STAGES_MS = 1_000;

/** Heartbeat and probe, when they are due. */
async function keepUp({ db, clock }: World, daemon: SimDaemon): Promise<void> {
  const { due, observer } = daemon;
  if (clock.now() >= due.heartbeat) {
    await keepAlive(db, daemon.daemon, daemon.clock.now(), ALIVE_MS);
    await daemon.machine?.clock.follow();
    due.heartbeat = clock.now() + ALIVE_MS / 3;
  }
  if (clock.now() >= due.probe) due.probe = await observer.probeOnce(daemon.clock.now());
}

/** One pass of the stages that have something to do. Answers when the next poll is due. */
async function pass(world: World, daemon: SimDaemon): Promise<number> {
  const { clock, pace } = world;
  const { observer, ledger, reconciler, write, due } = daemon;
  const { observations, nextAt } = await observer.runOnce(daemon.clock.now());
  const isDue = clock.now() >= due.stages;
  if (observations === 0 && !isDue) return nextAt;
  clock.advance(1);
  if (pace.unit() < 0.7) await runDry(ledger, clock);
  for (let more = true; more; ) more = (await reconciler.runOnce(daemon.clock.now())).more;
  if (isDue) {
    await write.operations.runOnce(daemon.clock.now());
    due.stages = clock.now() + STAGES_MS;
  }
  return observations > 0 ? clock.now() : nextAt;
}

/** Lets open operations end, without new writes. */
export async function settleDown(
  world: World,
  simulation: Simulation,
  rounds: number,
  stepMs = 3_000,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await world.time.settled();
    await flow(world, stepMs, QUIET_STEP_MS);
  }
  harvest(world, simulation);
}

/**
 * Decides undecided operations by what the service and the chain did; they still count as
 * undecided.
 */
async function decide(world: World, simulation: Simulation): Promise<void> {
  const { db, clock, daemons } = world;
  const undecided = await listOperations(db, { state: 'undecided', limit: 1_000 });
  const effects = await tokenEffectsOf(world, simulation);
  const moves = undecided.map(({ id, reference, sentAt, recordedAt }): Move => {
    const name = reference ?? '';
    const wasApplied = simulation.received.get(name)?.some((one) => one.applied) ?? false;
    const applied = wasApplied && effects.get(name)?.end !== 'failed';
    const decided = { id, at: clock.now(), cause: 'decision of people', evidence: { applied } };
    const effective = { effectiveAt: sentAt ?? recordedAt, effectiveBasis: 'decision' };
    return applied
      ? { ...decided, to: 'executed', ...effective }
      : { ...decided, to: 'not_executed' };
  });
  const operations = daemons[0]?.write.operations;
  if (!operations || moves.length === 0) return;
  const moved = await db.begin((tx) => operations.move(tx, moves));
  const tokens = moved.flatMap(({ contractId, tokenId }) =>
    contractId === null || tokenId === null
      ? []
      : [targetName({ kind: 'token', contractId, tokenId })],
  );
  await expedite(db, new Map(tokens.map((name) => [name, clock.now()])));
}

/**
 * Some hours without events. Polls of tokens that nothing waits for are spread over the time after
 * it; wallets are polled at once.
 */
async function rest(world: World): Promise<void> {
  const { clock, db } = world;
  clock.advance(2 * 3_600_000 + Math.floor(world.random.unit() * 4 * 3_600_000));
  await db.sql`
    update tallyhook.targets set next_poll_at = next_poll_at + interval '6 hours'
      + interval '1 hour' * mod(abs(hashtext(name)), 1000) / 1000.0
    where kind = 'token' and not pending and failures = 0`;
  await logInMembers(world);
  await flow(world, 30_000, QUIET_STEP_MS);
}

/** Wallets whose write has ended are not polled again until the end of the simulation. */
async function retireSingles(world: World): Promise<void> {
  await pollSinglesAt(world, world.clock.now() + 3_650 * DAY_MS);
  await logInMembers(world);
}

async function recallSingles(world: World): Promise<void> {
  await pollSinglesAt(world, world.clock.now());
}

async function pollSinglesAt({ db, singles }: World, at: number): Promise<void> {
  const names = singles.map((addr) => `wallet:${addressKey(addr)}`);
  await db.sql`
    update tallyhook.targets set next_poll_at = ${isoText(at)}
    where name = any(${names}::text[])`;
}
