/**
 * Two daemons under load while, again and again, one of their processes is killed and started again
 * at once, and Postgres and the brokers restart. Afterwards every event must be at each endpoint
 * and in the feed.
 */
import { connect, type Db } from '../../../../src/db/connect.ts';
import { after, monotonicMs } from '../../../../src/kernel/clock.ts';
import type { Sandbox } from '../../../../src/sandbox/sandbox.ts';
import { type App, type FeedEvent, makeApp } from '../../../harness/app.ts';
import { type DaemonProcess, environmentOf, spawnDaemon } from '../../../harness/daemon.ts';
import { seededRandom } from '../../../harness/seeded-random.ts';
import { until } from '../../../harness/until.ts';
import { startTraffic } from '../../soak/traffic.ts';
import { outcomesOf } from '../../soak/verdict.ts';
import { type Destination, openReceivers } from './destinations.ts';
import {
  type Come,
  claimsOf,
  type Figures,
  figuresOf,
  type Kills,
  type RecordedEvent,
  recordedEvents,
  TYPES,
  unansweredOf,
} from './figures.ts';

export interface KillPlan {
  seconds: number;
  /** Longer, until there were so many: starts take long on a busy machine. */
  killsMin?: number;
  /** Between two kills. */
  everyMs: number;
  /** Writes per second. */
  perS: number;
  /** One of so many kills ends a whole daemon, the others a process that sends webhooks. */
  daemonEvery: number;
  seed: number;
}

interface World {
  /** The owner's URL of a migrated database. */
  url: string;
  sandbox: Sandbox;
  /** Ways to restart Postgres, each used once. */
  restarts?: readonly (() => Promise<void>)[];
  /** Beside the HTTP receivers; closed by the caller. Each is restarted once if it can be. */
  brokers?: readonly Destination[];
}

/** Of an attempt; its claim ends `MARGIN_MS` later at the latest. */
const ATTEMPT_MS = 2_000;
const MARGIN_MS = 15_000;
/** The second wait of the common schedule would outlast a run. */
const RETRY_SCHEDULE_S = Array.from({ length: 20 }, () => 5);
/** A process that sends is killed up to this after it is ready. */
const LIVES_MS = 2_000;
/** A run may take so many times as long as planned. */
const LONGER = 10;
const WALLETS = 40;
const PLENTY = 10n ** 15n;
const WAITS = { deadlineMs: 180_000, everyMs: 200 };

const SETTINGS = {
  http: { port: 0 },
  // Says when the process that sends is ready.
  log: { level: 'info' },
  upstream: { budget_per_s: 100, initial_rate_per_s: 100 },
  reconciler: { quiescence_ms: 10_000, undecided_after_ms: 30_000 },
  webhooks: { attempt_timeout_ms: ATTEMPT_MS },
};

export async function runKills(
  world: World,
  plan: KillPlan,
  say: (text: string) => void = () => {},
): Promise<Figures> {
  const { url, sandbox, restarts = [], brokers = [] } = world;
  const wallets = Array.from({ length: WALLETS }, (_, n) => `0x${String(n).padStart(40, 'd')}`);
  for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: PLENTY });
  const receivers = await openReceivers(seededRandom(plan.seed + 2));
  const destinations = [...receivers, ...brokers];
  const env = environmentOf(url, sandbox.url);
  const daemons = [new Restarted(env), new Restarted(env)];
  const apps = () => daemons.flatMap(({ app }) => app ?? []);
  const db = connect({ url, max: 2 });
  try {
    await until(async () => (apps().length === daemons.length ? true : undefined));
    const endpointIds = await subscribe(apps, destinations, wallets);
    const feed = followFeed(apps);
    const applied = harvest(sandbox);
    const traffic = startTraffic({
      apps,
      sandbox,
      random: seededRandom(plan.seed),
      wallets,
      perS: plan.perS,
      readsPerS: 1,
      lost: 0,
    });
    say(`${plan.perS} writes/s; a kill every ${plan.everyMs} ms for ${plan.seconds} s`);
    const disturbed = await disturb(daemons, plan, { postgres: restarts, brokers }, say);
    const calmMs = monotonicMs();
    await traffic.stop();
    say('no more kills and writes; what is open ends');
    const ended = await until(async () => ((await isOpen(db)) ? undefined : true), WAITS);
    const recorded = await recordedEvents(db);
    const came = await until(
      async () => ((await isPending(db, recorded)) ? undefined : true),
      WAITS,
    );
    const endedMs = monotonicMs();
    const events = await feed.stop();
    // The service applies what it accepted some seconds later.
    const rightOutcomes = async () => {
      const found = await outcomesOf(db, traffic.writes, applied());
      return found.wrong.length === 0 ? found : undefined;
    };
    const outcomes =
      (await until(rightOutcomes)) ?? (await outcomesOf(db, traffic.writes, applied()));
    const { kills, crashesMs } = disturbed;
    const come = await Promise.all(
      destinations.map(async (destination, n): Promise<Come> => {
        const arrivals = await destination.arrivals();
        return { destination, endpointId: endpointIds[n] ?? '', arrivals };
      }),
    );
    const run = {
      destinations: come,
      events,
      claims: await claimsOf(db),
      unanswered: await unansweredOf(db),
      leaseMs: ATTEMPT_MS + MARGIN_MS,
      crashesMs,
    };
    const { writes } = traffic;
    return {
      ...figuresOf(recorded, await recordedEvents(db), run),
      kills,
      restarts: { postgres: crashesMs.length, brokers: disturbed.brokers },
      writes: {
        sent: writes.length,
        answered: writes.filter(({ status }) => status === 200 || status === 202).length,
        wrong: outcomes.wrong,
        undecided: outcomes.undecided,
      },
      unrecorded: outcomes.unrecorded,
      endedAfterS: ended && came ? (endedMs - calmMs) / 1000 : undefined,
    };
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.stop()));
    await db.end();
    for (const { close } of receivers) await close();
  }
}

/** A daemon that is started again whenever it ends. */
class Restarted {
  private readonly env: Record<string, string>;
  private readonly loop: Promise<void>;
  private isOver = false;
  private running: DaemonProcess | undefined;
  /** Until when a process that sends webhooks is spared, in milliseconds of `monotonicMs`. */
  private readonly spared = new Map<number, number>();

  constructor(env: Record<string, string>) {
    this.env = env;
    this.loop = this.run();
  }

  /** While it is ready. */
  get app(): App | undefined {
    const { running } = this;
    return running && makeApp(() => running.url);
  }

  private async run(): Promise<void> {
    while (!this.isOver) {
      const daemon = await spawnDaemon(this.env, SETTINGS).catch(() => undefined);
      if (!daemon) continue;
      const ended = new Promise((resolve) => daemon.child.once('exit', resolve));
      if (this.isOver) await daemon.kill();
      else this.running = daemon;
      await ended;
      this.running = undefined;
    }
  }

  /** False when it is not ready. */
  kill(): boolean {
    const { running } = this;
    this.running = undefined;
    return running?.child.kill('SIGKILL') ?? false;
  }

  /**
   * Kills the process that sends its webhooks, if that is ready; false when it is not.
   * @param livesMs from when it was first found to be ready, so that attempts are in flight
   */
  killSender(livesMs: number): boolean {
    const ready = /"pid":(\d+),"msg":"the delivery process is ready"/g;
    const starts = [...(this.running?.output() ?? '').matchAll(ready)];
    const pid = Number(starts.at(-1)?.[1] ?? 0);
    const nowMs = monotonicMs();
    if (pid === 0) return false;
    if (!this.spared.has(pid)) this.spared.set(pid, nowMs + livesMs);
    if ((this.spared.get(pid) ?? 0) > nowMs) return false;
    this.spared.set(pid, Number.POSITIVE_INFINITY);
    try {
      return process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended with its daemon.
      return false;
    }
  }

  async stop(): Promise<void> {
    this.isOver = true;
    this.kill();
    await this.loop;
  }
}

interface Disturbed {
  kills: Kills;
  /** When Postgres went away, in milliseconds of `monotonicMs`. */
  crashesMs: number[];
  /** Restarts of brokers. */
  brokers: number;
}

async function disturb(
  daemons: readonly Restarted[],
  { seconds, killsMin = 0, everyMs, daemonEvery, seed }: KillPlan,
  restarts: { postgres: readonly (() => Promise<void>)[]; brokers: readonly Destination[] },
  say: (text: string) => void,
): Promise<Disturbed> {
  const kills: Kills = { daemons: 0, senders: 0, none: 0 };
  const crashesMs: number[] = [];
  const random = seededRandom(seed + 1);
  let n = 0;
  const timer = setInterval(() => {
    const isDaemon = ++n % daemonEvery === 0;
    const from = Math.floor(random.unit() * daemons.length);
    const victim = [...daemons.slice(from), ...daemons.slice(0, from)].find((one) =>
      isDaemon ? one.kill() : one.killSender(LIVES_MS * random.unit()),
    );
    kills[victim === undefined ? 'none' : isDaemon ? 'daemons' : 'senders'] += 1;
  }, everyMs);
  const restart = async (name: string, act: () => Promise<void>, share: number) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    after(share * seconds * 1000, resolve);
    await promise;
    say(`${name} restarts`);
    await act();
  };
  const restartPostgres = async (act: () => Promise<void>) => {
    crashesMs.push(monotonicMs());
    await act();
  };
  const shareOf = (n: number, { length }: readonly unknown[]) => (n + 1) / (length + 1);
  const brokers = restarts.brokers.filter((one) => one.restart !== undefined);
  const under = Promise.all([
    ...restarts.postgres.map((act, n, all) =>
      restart('Postgres', () => restartPostgres(act), shareOf(n, all)),
    ),
    ...brokers.map((one, n, all) =>
      restart(one.name, async () => one.restart?.(), shareOf(n, all)),
    ),
  ]);
  const started = monotonicMs();
  const isOver = async () => {
    const isEnough = kills.daemons + kills.senders >= killsMin;
    return (isEnough && monotonicMs() - started >= seconds * 1000) || undefined;
  };
  await until(isOver, { deadlineMs: LONGER * seconds * 1000 });
  clearInterval(timer);
  await under;
  return { kills, crashesMs, brokers: brokers.length };
}

/** Answers the ids of the endpoints. */
async function subscribe(
  apps: () => App[],
  destinations: readonly Destination[],
  wallets: readonly string[],
): Promise<string[]> {
  const done = async (...request: Parameters<App['call']>) => {
    const answer = await apps()[0]?.call(...request);
    if (answer?.status !== 201) throw new Error(`answered ${answer?.status} ${answer?.text}`);
    return answer.json;
  };
  const common = { event_types: TYPES, retry_schedule: RETRY_SCHEDULE_S };
  const endpointIds: string[] = [];
  for (const { endpoint } of destinations) {
    const made = await done('POST', '/api/endpoints', { ...common, ...endpoint });
    endpointIds.push(made.id);
  }
  const refs = wallets.map((addr) => ({ kind: 'wallet', addr }));
  await done('POST', '/api/watches', refs);
  return endpointIds;
}

/** A reader of the feed that keeps its cursor and asks whichever daemon lives. */
function followFeed(apps: () => App[]) {
  const events: FeedEvent[] = [];
  let [cursor, isOver, last] = ['', false, -1];
  const read = async (waitS: number): Promise<boolean> => {
    const path = `/api/events?cursor=${cursor}&wait=${waitS}&limit=500`;
    const answer = await apps()
      .at(events.length % 2)
      ?.call('GET', path)
      .catch(() => undefined);
    if (answer?.status !== 200) return false;
    events.push(...answer.json.data);
    last = answer.json.data.length;
    cursor = answer.json.next_cursor;
    return true;
  };
  const loop = until(
    async () => {
      while (!isOver && (await read(1)));
      return isOver || undefined;
    },
    { deadlineMs: 3_600_000, everyMs: 10 },
  );
  return {
    /** So far. */
    events: events as readonly FeedEvent[],
    /** Reads to the end. */
    async stop(): Promise<FeedEvent[]> {
      isOver = true;
      await loop;
      last = -1;
      await until(async () => ((await read(0)) && last === 0 ? true : undefined));
      return events;
    },
  };
}

/** What the service applies, by the names of the writes. */
function harvest(sandbox: Sandbox) {
  return () => {
    const applied = new Map<string, number>();
    for (const { reason_type: name } of sandbox.control.effects(0n, 1_000_000))
      if (name !== null) applied.set(name, (applied.get(name) ?? 0) + 1);
    const tokens = [...sandbox.world.tokens.values()].filter(({ exists }) => exists);
    return { applied, tokens: new Set(tokens.map(({ token_id: id }) => id)) };
  };
}

/** Whether the outcome of a write is not known yet; two people decide about the undecided. */
async function isOpen(db: Db): Promise<boolean> {
  const rows = await db.sql`
    select from tallyhook.operations where state in ('queued', 'sending', 'unknown') limit 1`;
  return rows.length > 0;
}

/** Whether a delivery of these events has not ended. */
async function isPending(db: Db, events: readonly RecordedEvent[]): Promise<boolean> {
  const rows = await db.sql`
    select from tallyhook.pending_deliveries
    where 'evt_' || event_id = any(${events.map(({ id }) => id)}) limit 1`;
  return rows.length > 0;
}
