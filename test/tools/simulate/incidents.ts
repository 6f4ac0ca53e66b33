/**
 * What happens to the service, a wallet or a report for a while, beside lost answers and outages.
 * Each fault has draws of its own, so that one that is switched off does not shift the others.
 */
import { addressKey } from '../../../src/kernel/addresses.ts';
import { type Instant, isoText } from '../../../src/kernel/clock.ts';
import { unreachable } from '../../../src/kernel/errors.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { listOpenDrifts } from '../../../src/reconciler/drifts/drift.ts';
import type { FaultInput } from '../../../src/sandbox/faults/kinds.ts';
import { WALLET_STATUS } from '../../../src/sandbox/state/records.ts';
import { ALL_FAULTS, type Fault } from './faults.ts';
import { reportChange } from './late-reports.ts';
import { changeBy, changeWallet, type Outside } from './outside.ts';
import type { Simulation } from './run.ts';
import { drawsOf, READ_LAG_ASSUMED_MS, rarity, type World } from './world.ts';
import { requestWrite } from './writes.ts';

export interface Window {
  from: Instant;
  until: Instant;
}

export interface Incidents {
  /** When only the probe failed, with or without the rest of its host. */
  probesDead: Window[];
  /** When wallets were not found or counted as withdrawn. */
  vanished: (Window & { key: string; how: string })[];
  /** When something else stopped the service, or its reads. */
  stopped: Window[];
  /** When a token was asked for and none was given. */
  untoken: Instant[];
  /** Reports of a known write that were recorded as another one, in words. */
  doubled: string[];
  /** What ends with the session or the simulation. */
  lasting: { ends: 'services' | 'all'; end: () => void }[];
}

export function noIncidents(): Incidents {
  return {
    probesDead: [],
    vanished: [],
    stopped: [],
    untoken: [],
    doubled: [],
    lasting: [],
  };
}

interface Due {
  fault: Fault;
  random: Random;
}

/** Each fault happens at least once, at one of the first steps. */
const FIRST_STEP = 2;

/** What happens after the n-th step. */
export function incidentsDue(plan: World['plan'], n: number): Due[] {
  const random = drawsOf(plan, 'incident', n);
  return ALL_FAULTS.flatMap((fault, i) => {
    const drawn = random.unit() < rarity(plan) / plan.incidentSteps || n === FIRST_STEP + i;
    const own = drawsOf(plan, 'incident', n * ALL_FAULTS.length + i + 1_000_000);
    return drawn && plan.faults.includes(fault) ? [{ fault, random: own }] : [];
  });
}

export async function happen(world: World, simulation: Simulation, due: Due): Promise<void> {
  const { fault, random } = due;
  const name = await act(world, simulation, fault, random);
  if (name !== undefined) simulation.events[name] = (simulation.events[name] ?? 0) + 1;
}

async function act(
  world: World,
  simulation: Simulation,
  fault: Fault,
  random: Random,
): Promise<string | undefined> {
  const { incidents } = simulation;
  switch (fault) {
    case 'generic':
      return answerGenerically(world, incidents, random);
    case 'probes':
      return failProbes(world, incidents, random);
    case 'vanish':
      return vanish(world, incidents, random);
    case 'reports':
      return world.plan.lookAlike ? undefined : changeAgain(world, simulation, random);
    case 'suspend':
      return suspend(world, simulation, random);
    case 'answers':
      return undefined;
    default:
      return unreachable(fault);
  }
}

/** Suspends the machine of a daemon between the commit of an intent and its first byte. */
async function suspend(world: World, simulation: Simulation, random: Random): Promise<string> {
  const { clock, time } = world;
  const suspendedMs = 20_000 + Math.floor(random.unit() * 160_000);
  const from = clock.now();
  simulation.killed.push(from);
  simulation.incidents.stopped.push({ from, until: from + suspendedMs });
  requestWrite(world, simulation.requested, { suspendedMs });
  await time.settled();
  return 'suspended';
}

/** Ends what is still lasting: what the whole service has, or all. */
export function endIncidents(
  { clock }: World,
  { incidents }: Simulation,
  what: 'services' | 'all',
): void {
  const now = clock.now();
  for (const { ends, end } of incidents.lasting) if (what === 'all' || ends === what) end();
  incidents.lasting = incidents.lasting.filter(({ ends }) => what !== 'all' && ends !== what);
  const windows = what === 'all' ? incidents.vanished : [];
  for (const window of [...windows, ...incidents.probesDead])
    window.until = Math.min(window.until, now);
}

/** Requests meet the fault for so long, or until it is ended. */
function meet(world: World, fault: FaultInput, ms: number): () => void {
  const { control, world: service } = world.sandbox;
  const row = control.addFault({ ...fault, count: 1_000_000_000 });
  const key = row.fault_id.toString();
  const end = () => {
    const met = service.faults.get(key);
    if (met) service.faults.put(key, { ...met, left: 0 });
  };
  service.timers.add(world.clock.now() + ms, end);
  return end;
}

const FRAMEWORK = {
  timestamp: '2026-01-01T00:00:00.000+00:00',
  status: 404,
  error: 'Not Found',
  message: 'No message available',
};
const HTML = '<html><head><title>404 Not Found</title></head><body>nginx</body></html>';
const ACCOUNT = '/v1/app/token/account';
const NO_ROUTE = { kind: 'status', status: 404, method: 'GET' } as const;
const JSON_TYPE = { content_type: 'application/json' };
/** Answers that say nothing of the token or wallet that was asked for. */
const GENERIC: FaultInput[] = [
  { ...NO_ROUTE, ...JSON_TYPE, body: jsonText(FRAMEWORK), path: '/v1/chain/*' },
  { ...NO_ROUTE, ...JSON_TYPE, body: jsonText(FRAMEWORK), path: ACCOUNT },
  { ...NO_ROUTE, body: HTML, path: '/v1/*' },
  // The service's own envelope, for every path.
  { kind: 'error', code: '404', method: 'GET', path: '/v1/chain/*' },
  { kind: 'error', code: '398', method: 'GET', path: ACCOUNT },
];

/** A deployment without its routes, or a service without its data. */
function answerGenerically(world: World, incidents: Incidents, random: Random): string {
  const fault = GENERIC[Math.floor(random.unit() * GENERIC.length)] ?? NO_ROUTE;
  const ms = 5_000 + Math.floor(random.unit() * (random.unit() < 0.3 ? 200_000 : 40_000));
  incidents.stopped.push({ from: world.clock.now(), until: world.clock.now() + ms });
  incidents.lasting.push({ ends: 'services', end: meet(world, fault, ms) });
  return 'generic errors';
}

const PROBE = { endpoint: 'maintenance' } as const;
const PROBE_FAILS: FaultInput[] = [
  { kind: 'status', status: 500, ...PROBE },
  { kind: 'status', status: 404, body: HTML, ...PROBE },
  { kind: 'dropped', reset: true, ...PROBE },
];
const HOST_FAILS: FaultInput[] = [
  { kind: 'status', status: 502, body: HTML, path: '/v1/oauth/*' },
  { kind: 'status', status: 502, body: HTML, path: '/v1/system/*' },
];

/** The maintenance path fails, or all of the authorization host, and nothing else. */
function failProbes(world: World, incidents: Incidents, random: Random): string {
  const from = world.clock.now();
  const ms = 60_000 + Math.floor(random.unit() * 90_000);
  const wholeHost = random.unit() < 0.4;
  const one = PROBE_FAILS[Math.floor(random.unit() * PROBE_FAILS.length)];
  for (const fault of wholeHost || !one ? HOST_FAILS : [one])
    incidents.lasting.push({ ends: 'services', end: meet(world, fault, ms) });
  incidents.probesDead.push({ from, until: from + ms });
  return wholeHost ? 'dead authorization host' : 'dead probe';
}

/** A wallet is not found, or has another status; its balance is as before when it is back. */
function vanish(world: World, incidents: Incidents, random: Random): string | undefined {
  const { users, clock, sandbox } = world;
  const addr = users[Math.floor(random.unit() * users.length)] ?? '';
  const key = addressKey(addr);
  const from = clock.now();
  const ms = 120_000 + Math.floor(random.unit() * 4 * 3_600_000);
  const until = from + ms;
  if (incidents.vanished.some((other) => other.key === key && other.until >= from))
    return undefined;
  const isWithdrawn = random.unit() < 0.3;
  incidents.vanished.push({ key, from, until, how: isWithdrawn ? 'withdrawn' : 'not found' });
  if (isWithdrawn) {
    const end = () => void sandbox.control.setWallet(addr, { status: WALLET_STATUS.normal });
    sandbox.control.setWallet(addr, { status: WALLET_STATUS.withdrawn });
    sandbox.world.timers.add(until, end);
    incidents.lasting.push({ ends: 'all', end });
    return 'withdrawn wallet';
  }
  const fault = { kind: 'error', code: '398', path: '/v1/app/*', contains: addr } as const;
  incidents.lasting.push({ ends: 'all', end: meet(world, fault, ms) });
  return 'vanished wallet';
}

/**
 * Changes a wallet that others have changed before: by the same amount, so that two drifts are
 * equal, or by another one just after the former change was reported.
 */
async function changeAgain(
  world: World,
  { outside, requested }: Simulation,
  random: Random,
): Promise<string> {
  const recent = outside.filter(({ reportedAt }) => reportedAt === undefined).slice(-6);
  const before = recent[Math.floor(random.unit() * recent.length)];
  if (!before) {
    outside.push(...changeWallet({ ...world, random }, outside, requested));
    return 'change elsewhere';
  }
  if (random.unit() < 0.5 && (await isDrift(world, before))) {
    await reportChange(world, outside, before);
    outside.push(...changeBy(world, before.addr, 10_000_000n * BigInt(1 + below(random, 9))));
    return 'reported, then changed again';
  }
  outside.push(...changeBy(world, before.addr, before.amount));
  return 'equal change';
}

async function isDrift({ db }: World, { addr, amount }: Outside): Promise<boolean> {
  const drifts = await listOpenDrifts(db, [addressKey(addr)]);
  return drifts.some((drift) => drift.amount === amount);
}

function below(random: Random, n: number): number {
  return Math.floor(random.unit() * n);
}

/** So long after another fault a dead probe is not judged. */
const NOTICED_MS = 20_000;

/** While only the probe fails, the service is polled as ever, and does not count as down. */
export async function wrongsOfProbes(
  { db }: World,
  { incidents, polls, killed }: Simulation,
): Promise<string[]> {
  const polled = [...polls.values()].flat();
  const down = await downIn(db);
  const instants = [...incidents.untoken, ...killed].map((at) => ({ from: at, until: at }));
  const others = [...incidents.stopped, ...instants];
  return incidents.probesDead
    .flatMap((window) => partsWithout(window, others))
    .flatMap(({ from, until }) => {
      const during = `from ${isoText(from)} until ${isoText(until)} only the probe failed`;
      const wrongs: string[] = [];
      if (!polled.some((at) => at > from && at < until)) wrongs.push(`${during}: no poll`);
      if (down.some((one) => one.from < until && one.until > from))
        wrongs.push(`${during}: the service counts as down`);
      return wrongs;
    });
}

/** When the service counted as down. */
async function downIn(db: World['db']): Promise<Window[]> {
  const changes = await db.sql<{ type: string; at: Instant }[]>`
    select type, recorded_at as at from tallyhook.events
    where type in ('service.unreachable', 'service.recovered', 'service.maintenance_started',
      'service.maintenance_ended')
    order by recorded_at`;
  return changes.flatMap(({ type, at }, n) => {
    const isDown = type === 'service.unreachable' || type === 'service.maintenance_started';
    return isDown ? [{ from: at, until: changes[n + 1]?.at ?? Number.POSITIVE_INFINITY }] : [];
  });
}

/** The parts of a window in which nothing else happened, as far as they are long enough. */
function partsWithout(window: Window, others: readonly Window[]): Window[] {
  const parts: Window[] = [];
  let { from } = window;
  for (const other of others.toSorted((a, b) => a.from - b.from)) {
    if (other.until + NOTICED_MS <= from || other.from >= window.until) continue;
    parts.push({ from, until: other.from });
    from = Math.max(from, other.until + NOTICED_MS);
  }
  parts.push({ from, until: window.until });
  return parts.filter((part) => part.until - part.from >= NOTICED_MS);
}

/** Polls that show it before a wallet must be called absent, and the time between two of them. */
const ABSENT_POLLS = 3;
const ABSENT_POLL_MS = 60_000;

/**
 * A wallet that is known to hold a balance and is gone, or withdrawn, is an event, as far as polls
 * showed it. The reads that confirm the absence of another wallet come close together, and refusals
 * while something else stopped the service say nothing.
 */
export async function wrongsOfVanished(
  { db }: World,
  { incidents, refused, polls }: Simulation,
): Promise<string[]> {
  const wrongs: string[] = [];
  for (const { key, from, until, how } of incidents.vanished) {
    const seen = polls.get(key) ?? [];
    const before = incidents.vanished.filter((other) => other.key === key && other.from < from);
    const backAt = Math.max(...before.map((other) => other.until)) + READ_LAG_ASSUMED_MS;
    if (!seen.some((at) => at > backAt && at < from)) continue;
    const within = ({ after, times }: { after: Instant; times: readonly Instant[] }) =>
      times.filter((at) => at > after && at < until);
    const isShown =
      how === 'withdrawn'
        ? within({ after: from + READ_LAG_ASSUMED_MS, times: seen }).length > 0
        : spaced(within({ after: from, times: refused.get(key) ?? [] }), incidents.stopped) >=
          ABSENT_POLLS;
    if (!isShown) continue;
    const type = how === 'not found' ? 'wallet.vanished' : 'wallet.status_changed';
    const rows = await db.sql`
      select 1 from tallyhook.events
      where subject = ${`wallet:${key}`} and type = ${type} and recorded_at >= ${isoText(from)}
        and recorded_at < ${isoText(until + NOTICED_MS)}`;
    if (rows.length === 0) wrongs.push(`${key} was ${how} from ${isoText(from)}: no ${type}`);
  }
  return wrongs;
}

/** How many of the instants are outside the windows and so far from each other. */
function spaced(times: readonly Instant[], windows: readonly Window[]): number {
  let last = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (const at of times) {
    if (at < last + ABSENT_POLL_MS) continue;
    if (windows.some(({ from, until }) => from <= at && at <= until)) continue;
    last = at;
    count += 1;
  }
  return count;
}
