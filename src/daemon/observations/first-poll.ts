/**
 * The pre-image of a write: what was last observed of its wallets or token. A target that was never
 * observed is polled once before the write is sent, so that the write's effect can be proved later:
 * by this daemon, or, when it has not the role `workers`, by one that has. Concurrent writes share
 * queries and polls.
 */
import type { Db } from '../../db/connect.ts';
import type { WriteRoute } from '../../gateway/gateway.ts';
import { addressKey, isAddress } from '../../kernel/addresses.ts';
import { type Clock, monotonicMs, withDeadline } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import {
  listLastRecords,
  type Observer,
  type Readable,
  targetName,
} from '../../observer/observer.ts';
import type { Upstream } from '../../upstream/upstream.ts';

interface Deps {
  db: Db;
  observer: Pick<Observer, 'addForFirstPoll' | 'noteRead'>;
  upstream: Pick<Upstream, 'account' | 'token' | 'budget'>;
  clock: Clock;
  pause: (ms: number) => Promise<void>;
  log: Log;
  /** Whether it is a known operator, fee or collection wallet; these are never polled here. */
  isOwnWallet(addr: string): boolean;
  /** The longest that a write waits for a first poll; 0 disables first polls. */
  firstPollMs: number;
  /** Whether this daemon polls; the budget is divided among those that do. */
  polls: boolean;
}
interface LastSeen {
  name: string;
  at: number | null;
  seen: Json;
}
type Find = (name: string) => Promise<LastSeen | undefined>;

/** Returns the pre-image as JSON, or null for a write without wallets or token. */
export function makePreImages(deps: Deps): (write: WriteRoute) => Promise<Json> {
  const find = batchedLastSeen(deps.db);
  const firstPoll = makeFirstPolls(deps, find);
  return async (write): Promise<Json> => {
    const targets = targetsOf(write);
    const found = await Promise.all(
      targets.map(async (target) => (await find(targetName(target))) ?? (await firstPoll(target))),
    );
    const seen = found.filter((one) => one !== undefined);
    if (targets[0]?.kind === 'token')
      return seen[0] ? { token: seen[0].seen, at: seen[0].at } : null;
    return targets.length === 0 ? null : { wallets: seen.map((one) => ({ ...one })) };
  };
}

function targetsOf({ family, fields }: WriteRoute): Readable[] {
  if (family === 'nft') {
    const { contractId, tokenId } = fields;
    return contractId == null || tokenId == null ? [] : [{ kind: 'token', contractId, tokenId }];
  }
  const { fromAddr, toAddr } = fields;
  const wallets = new Map<string, Readable>();
  for (const addr of [fromAddr, toAddr])
    if (addr != null && isAddress(addr) && !wallets.has(addressKey(addr)))
      wallets.set(addressKey(addr), { kind: 'wallet', addr });
  return [...wallets.values()];
}

/** One query at a time; names that arrive while it runs are looked up together by the next one. */
function batchedLastSeen(db: Db): Find {
  let next: { names: Set<string>; rows: Promise<Map<string, LastSeen>> } | undefined;
  let running: Promise<unknown> = Promise.resolve();
  return async (name) => {
    if (!next) {
      const names = new Set<string>();
      const rows = running.then(async () => {
        next = undefined;
        // `single` has a deadline, and the next query waits for this one.
        const found = await db.single((q) => listLastRecords(q, [...names]));
        return new Map(
          found.map((row) => [
            row.name,
            { name: row.name, at: row.lastStartedAt, seen: row.lastRecord },
          ]),
        );
      });
      running = rows.catch(() => {});
      next = { names, rows };
    }
    next.names.add(name);
    return (await next.rows).get(name);
  };
}

/** A target found absent is polled again only after this time. */
const POLLED_TTL_MS = 60_000;
const POLLED_MAX = 10_000;

/** Between two checks of a budget that other polls were quicker to use. */
const RETRY_MS = 20;
/** Between two checks for the poll of another daemon. */
const LOOK_MS = 50;

/** Polls a target once, when the budget allows that in time, and waits at most `firstPollMs`. */
function makeFirstPolls(
  deps: Deps,
  find: Find,
): (target: Readable) => Promise<LastSeen | undefined> {
  const { upstream, clock, log, isOwnWallet, firstPollMs } = deps;
  const { budget } = upstream;
  const inFlight = new Map<string, Promise<LastSeen | undefined>>();
  const polledAt = new Map<string, number>();
  let waiting = 0;

  /** Milliseconds until the budget has a free request for one more poll; 0 when it has one now. */
  const waitMs = (): number => {
    if (budget.free() > 0) return 0;
    return Math.max(RETRY_MS, Math.ceil(budget.nextAt() - clock.now()));
  };
  const remember = (name: string) => {
    if (polledAt.size >= POLLED_MAX) polledAt.clear();
    polledAt.set(name, monotonicMs());
  };
  const run = async (target: Readable, name: string): Promise<LastSeen | undefined> => {
    const until = clock.now() + firstPollMs;
    // A write is not delayed when those that wait already use up the time.
    if (waitMs() + (waiting * 1_000) / budget.ratePerS() > firstPollMs) return undefined;
    waiting += 1;
    try {
      for (let ms = waitMs(); ms > 0; ms = waitMs()) {
        if (clock.now() + ms > until) return undefined;
        await deps.pause(ms);
      }
    } finally {
      waiting -= 1;
    }
    remember(name);
    return poll(deps, target, name);
  };
  const runElsewhere = async (target: Readable, name: string): Promise<LastSeen | undefined> => {
    if ((waiting * 1_000) / budget.bounds().effective > firstPollMs) return undefined;
    waiting += 1;
    remember(name);
    return pollElsewhere(deps, { target, name, find }).finally(() => {
      waiting -= 1;
    });
  };
  const start = (target: Readable, name: string): Promise<LastSeen | undefined> | undefined => {
    const last = polledAt.get(name);
    if (last !== undefined && monotonicMs() - last < POLLED_TTL_MS) return undefined;
    const observation = (deps.polls ? run(target, name) : runElsewhere(target, name))
      .catch((err: unknown) => {
        log.debug({ err }, 'first poll not recorded');
        return undefined;
      })
      .finally(() => inFlight.delete(name));
    inFlight.set(name, observation);
    return observation;
  };
  return async (target) => {
    if (firstPollMs === 0) return undefined;
    if (target.kind === 'wallet' && isOwnWallet(target.addr)) return undefined;
    const name = targetName(target);
    const observation = inFlight.get(name) ?? start(target, name);
    if (!observation) return undefined;
    return withDeadline(observation, firstPollMs, () => undefined);
  };
}

async function poll(
  { db, observer, upstream, clock, log, firstPollMs }: Deps,
  target: Readable,
  name: string,
): Promise<LastSeen | undefined> {
  // Another daemon may have received a deadline. The observer polls it if this poll fails.
  const dueAt = clock.now() + firstPollMs;
  if (!(await observer.addForFirstPoll(db, target, dueAt))) return undefined;
  const observation =
    target.kind === 'wallet'
      ? await upstream.account(target.addr, 'unknown')
      : await upstream.token(target.contractId, target.tokenId, 'unknown');
  if (observation.result === 'inconclusive') return undefined;
  const noted = observer.noteRead(target, observation);
  if (observation.result === 'absent') {
    // The write does not wait until the absence is confirmed.
    noted.catch((err: unknown) => log.debug({ err }, 'first poll not recorded'));
    return undefined;
  }
  await noted;
  return { name, at: observation.startedAt, seen: { ...observation.record } };
}

/** Has a daemon with the role `workers` poll the target at once; waits until it has. */
async function pollElsewhere(
  { db, observer, clock, pause, firstPollMs }: Deps,
  { target, name, find }: { target: Readable; name: string; find: Find },
): Promise<LastSeen | undefined> {
  const until = clock.now() + firstPollMs;
  if (!(await observer.addForFirstPoll(db, target, clock.now()))) return undefined;
  for (;;) {
    await pause(LOOK_MS);
    const seen = await find(name);
    if (seen || clock.now() >= until) return seen;
  }
}
