/**
 * Runs a simulation of the observer: daemons poll while wallets and tokens change behind them, the
 * service fails and asks to wait, and daemons end and start again.
 */
import { findService } from '../../../src/observer/observer.ts';
import { addFault, changeToken, changeWallet, noteAll } from './changes.ts';
import { noteAge, noteSilence } from './history.ts';
import { countTraffic, newTraffic, type Traffic } from './traffic.ts';
import { type Verdict, verdictOf } from './verdict.ts';
import { beat, HOUR_MS, restart, type SimDaemon, STEADY_MS, type World } from './world.ts';

export interface Simulation {
  traffic: Traffic;
  verdict: Verdict;
  restarts: number;
  faults: number;
}

/** Mean time between changes, faults and restarts. */
const CHANGE_MS = 6_000;
const FAULT_MS = 60_000;
const RESTART_MS = 300_000;
/** Before the first change, and after the last one. */
const CALM_MS = { before: STEADY_MS, after: 6 * STEADY_MS };
/** The shortest and the longest time between two passes of a daemon. */
const PASS_MS = { min: 20, max: 5_000 };

/** @param onHour called with each virtual hour that has passed */
export async function runSimulation(
  world: World,
  onHour: (hours: number, traffic: Traffic) => void = () => {},
): Promise<Simulation> {
  const { clock, plan } = world;
  const traffic = newTraffic();
  const run = { traffic, restarts: 0, faults: 0 };
  clock.advance(10_000);
  noteAll(world);
  await pass(world, traffic, CALM_MS.before);
  const startsAt = clock.now();
  const endsAt = startsAt + plan.hours * HOUR_MS;
  let hours = 0;
  const next = { change: 0, fault: 0, restart: 0 };
  const means = { change: CHANGE_MS, fault: FAULT_MS, restart: RESTART_MS };
  for (const what of ['change', 'fault', 'restart'] as const)
    next[what] = clock.now() + gapMs(world, means[what]);
  while (clock.now() < endsAt) {
    const what = (['change', 'fault', 'restart'] as const).toSorted((a, b) => next[a] - next[b])[0];
    if (what === undefined) break;
    await pass(world, traffic, next[what] - clock.now());
    next[what] = clock.now() + gapMs(world, means[what]);
    await happen(world, run, what);
    const passed = Math.floor((clock.now() - startsAt) / HOUR_MS);
    if (passed > hours) onHour(passed, traffic);
    hours = passed;
  }
  world.sandbox.control.clearFaults();
  await pass(world, traffic, CALM_MS.after);
  return { ...run, verdict: await verdictOf(world) };
}

async function happen(
  world: World,
  run: Omit<Simulation, 'verdict'>,
  what: 'change' | 'fault' | 'restart',
): Promise<void> {
  const { random, daemons } = world;
  if (what === 'change') (random.unit() < 0.5 ? changeWallet : changeToken)(world);
  else if (what === 'fault') {
    run.faults += 1;
    run.traffic.throttles.push(...addFault(world));
  } else {
    run.restarts += 1;
    await restart(world, Math.floor(random.unit() * daemons.length), random.unit() < 0.5);
  }
}

function gapMs({ random }: World, meanMs: number): number {
  return Math.ceil(-Math.log(1 - random.unit()) * meanMs);
}

/** Lets so much time pass while the daemons work, one after the other. */
async function pass(world: World, traffic: Traffic, ms: number): Promise<void> {
  const { clock, daemons } = world;
  const until = clock.now() + ms;
  while (clock.now() < until) {
    const dueAt = ({ passAt, beatAt }: SimDaemon) => Math.min(passAt, beatAt);
    const first = daemons.toSorted((a, b) => dueAt(a) - dueAt(b))[0];
    if (!first || dueAt(first) > until) break;
    const before = clock.now();
    clock.set(Math.max(before + 1, dueAt(first)));
    await work(world, first);
    await noteIfSilent(world, before);
    noteAge(world.history, clock.now(), (await first.observer.pricing()).bounds.maxMs);
    countTraffic(world, traffic);
  }
  clock.set(Math.max(clock.now(), until));
}

async function work(world: World, sim: SimDaemon): Promise<void> {
  const { clock, pace, daemons } = world;
  const now = clock.now();
  if (sim.beatAt <= now) await beat(world, sim);
  if (sim.passAt > now) return;
  if (sim.probeAt <= now) sim.probeAt = await sim.observer.probeOnce(now);
  const { observations, nextAt } = await sim.observer.runOnce(now);
  const waitMs = PASS_MS.min + pace.unit() * (PASS_MS.max - PASS_MS.min);
  sim.passAt = Math.ceil(Math.max(now + waitMs, Math.min(nextAt, now + PASS_MS.max)));
  clock.advance(1);
  // One of them is the leader.
  for (const { reconciler } of observations > 0 ? daemons : [sim])
    for (let more = true; more; ) more = (await reconciler.runOnce(clock.now())).more;
}

/** Whether the service, or a deadline that it set, held polls back since then. */
async function noteIfSilent({ db, clock, daemons, history }: World, since: number): Promise<void> {
  const now = clock.now();
  const ends = daemons.flatMap(({ upstream }) => upstream.blockedUntil('polls') ?? []);
  const service = await findService(db);
  const isDown = service?.state === 'maintenance' || service?.state === 'unreachable';
  if (isDown || ends.length > 0) noteSilence(history, since, Math.max(now, ...ends));
}
