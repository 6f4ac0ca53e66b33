/**
 * Runs a load: writes at a steady rate, after any answers, some of them with lost answers, and
 * five changes of the busy wallets by others.
 */
import { monotonicMs, systemClock } from '../../../src/kernel/clock.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { lostAnswers } from '../../harness/lost-answers.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { until } from '../../harness/until.ts';
import { type Feed, followFeed } from './feed.ts';
import { LIMITS, type World } from './world.ts';

export interface Write {
  name: string;
  /** Milliseconds from the start of the load until the request was due, and its duration. */
  dueMs: number;
  tookMs: number;
  /** 0 without an answer. */
  status: number;
}

/** A change made past the daemon. */
export interface Change {
  addr: string;
  amount: bigint;
  at: number;
}

export interface Run {
  writes: Write[];
  changes: Change[];
  /** When the service applied each write, by its name; more than once if it did. */
  applied: Map<string, number[]>;
  feed: Feed;
  /** Writes that were due while too many were under way. */
  skipped: number;
  tookMs: number;
  /** Reads of wallets that the service answered during the load, those of apps included. */
  polls: number;
}

const CHANGES = 5;
const TICK_MS = 5;
const UNDER_WAY_MAX = 1_500;
/** Beyond the time that the slowest effect may take to settle or to be decided. */
const DRAIN_MS = 15_000;
const LOST_DRAIN_MS =
  LIMITS.writeTimeoutMs + LIMITS.quiescenceMs + LIMITS.undecidedAfterMs + DRAIN_MS;

const LOST = lostAnswers(900, 5_000);

export async function runLoad(world: World): Promise<Run> {
  const { plan, app } = world;
  const feed = followFeed(app);
  const run: Run = {
    writes: [],
    changes: [],
    applied: new Map(),
    feed,
    skipped: 0,
    tookMs: 0,
    polls: 0,
  };
  const harvest = harvester(world, run);
  const harvesting = setInterval(harvest, 1_000);
  try {
    const reading = readWallets(world);
    run.tookMs = await press(world, run).finally(reading.stop);
    harvest();
    const polls = run.polls;
    if (!plan.pollsOff) await drained(world);
    harvest();
    run.polls = polls;
  } finally {
    clearInterval(harvesting);
    await feed.stop();
  }
  return run;
}

/** Sends until the time is over and every answer is there. Answers how long it sent. */
async function press(world: World, run: Run): Promise<number> {
  const { plan, scenario } = world;
  const random = seededRandom(plan.seed);
  const forMs = plan.minutes * 60_000;
  const gapMs = 1_000 / (plan.perS ?? scenario.perS);
  const changes = changesOf(world, forMs);
  const underWay = new Set<Promise<void>>();
  const started = monotonicMs();
  let dueMs = 0;
  await new Promise<void>((resolve) => {
    const tick = setInterval(() => {
      const now = monotonicMs() - started;
      for (; dueMs <= now && dueMs < forMs; dueMs += gapMs * (0.5 + random.unit())) {
        if (underWay.size >= UNDER_WAY_MAX) run.skipped += 1;
        else {
          const sent = send(world, run, random, dueMs);
          underWay.add(sent);
          sent.finally(() => underWay.delete(sent));
        }
      }
      for (let next = changes[0]; next && next.dueMs <= now; next = changes[0]) {
        changes.shift();
        world.sandbox.control.setWallet(next.addr, { delta: next.amount });
        run.changes.push({ addr: next.addr, amount: next.amount, at: systemClock.now() });
      }
      if (now < forMs) return;
      clearInterval(tick);
      resolve();
    }, TICK_MS);
  });
  await Promise.all(underWay);
  return forMs;
}

/** Apps read the wallets in turn, as often as the plan says, until it is stopped. */
function readWallets({ plan, scenario, app }: World): { stop(): Promise<unknown> } {
  const addrs = [...scenario.busy, ...scenario.others];
  const started = monotonicMs();
  const underWay = new Set<Promise<unknown>>();
  let count = 0;
  const tick = setInterval(() => {
    for (; count < ((monotonicMs() - started) / 1_000) * plan.readsPerS; count++) {
      const path = `/v1/app/token/account?addr=${addrs[count % addrs.length]}`;
      const read = app.call('GET', path).catch(() => undefined);
      underWay.add(read);
      read.finally(() => underWay.delete(read));
    }
  }, TICK_MS);
  return {
    stop() {
      clearInterval(tick);
      return Promise.all(underWay);
    },
  };
}

async function send(world: World, run: Run, random: Random, dueMs: number): Promise<void> {
  const { plan, scenario, sandbox, app } = world;
  const name = `w${run.writes.length}`;
  const write: Write = { name, dueMs, tookMs: 0, status: 0 };
  run.writes.push(write);
  const { path, body } = scenario.draw(random, name);
  if (random.unit() < plan.lost) {
    const fault = LOST[Math.floor(random.unit() * LOST.length)];
    if (fault) sandbox.control.addFault({ ...fault, contains: `"${name}"` });
  }
  const started = monotonicMs();
  const answer = await app.call('POST', path, body).catch(() => undefined);
  write.tookMs = monotonicMs() - started;
  write.status = answer?.status ?? 0;
}

/** No two of them sum to a third, so that each can be told from the others. */
function changesOf({ scenario, plan }: World, forMs: number): (Omit<Change, 'at'> & Due)[] {
  const random = seededRandom(plan.seed + 1);
  return Array.from({ length: CHANGES }, (_, n) => {
    const size = (scenario.change * BigInt(10 + 3 * n)) / 10n + BigInt(n);
    return {
      addr: scenario.busy[n % scenario.busy.length] ?? '',
      amount: n % 2 === 0 ? -size : size,
      dueMs: (forMs * (n + 0.3 + 0.4 * random.unit())) / CHANGES,
    };
  });
}

interface Due {
  dueMs: number;
}

/** Collects what the service did, whose own logs are bounded. */
function harvester({ sandbox }: World, run: Run): () => void {
  let effect = 0n;
  let request = sandbox.control.requests(undefined, 1).at(-1)?.n ?? 0;
  return () => {
    for (const { n, at, reason_type: name } of sandbox.control.effects(effect, 50_000)) {
      effect = n;
      if (name !== null) run.applied.set(name, [...(run.applied.get(name) ?? []), at]);
    }
    for (const { n, endpoint } of sandbox.control.requests(request, 20_000)) {
      request = n;
      if (endpoint === 'account') run.polls += 1;
    }
  };
}

/** Waits until nothing is open any more except what people decide, within bounds. */
async function drained({ plan, db }: World): Promise<void> {
  await until(
    async () => {
      const rows = await db.sql`
        select from tallyhook.operations where settled_at is null
          and state in ('sending', 'unknown', 'accepted', 'executed') limit 1`;
      return rows.length === 0 ? true : undefined;
    },
    { deadlineMs: (plan.lost > 0 ? LOST_DRAIN_MS : DRAIN_MS) + plan.withinS * 1_000, everyMs: 250 },
  );
}
