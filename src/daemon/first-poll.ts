/**
 * What was last seen of the parties of a write, for its intent; and the one look that comes before
 * the first write ever on a wallet or a token, so that there is something to compare with. Writes
 * that come together share their questions to the database, and their looks.
 */
import type { Db } from '../db/connect.ts';
import type { WriteDescription } from '../gateway/gateway.ts';
import { addressKey, isAddress } from '../kernel/addresses.ts';
import { monotonicMs, withDeadline } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import { lastSeen, type Observer, type TargetRef, targetName } from '../observer/observer.ts';
import type { Upstream } from '../upstream/upstream.ts';

interface Given {
  db: Db;
  observer: Pick<Observer, 'add' | 'noteRead'>;
  upstream: Pick<Upstream, 'account' | 'token' | 'budget'>;
  log: Log;
  /** Wallets of our own books, lower case: nothing waits for a look at them. */
  ownWallets: ReadonlySet<string>;
  /** How long a write waits for its first look at most; 0: no look is made. */
  firstPollMs: number;
}
interface Seen {
  name: string;
  at: number | null;
  seen: Json;
}
type Ref = Exclude<TargetRef, { kind: 'contract' }>;

/** The pre-image of a write as JSON, or null for one that touches nothing we could look at. */
export function preImageFrom(given: Given): (write: WriteDescription) => Promise<Json> {
  const seenOf = gathered(given.db);
  const firstPoll = firstPolls(given);
  return async (write): Promise<Json> => {
    const refs = refsOf(write);
    const found = await Promise.all(
      refs.map(async (ref) => (await seenOf(targetName(ref))) ?? (await firstPoll(ref))),
    );
    const seen = found.filter((one) => one !== undefined);
    if (refs[0]?.kind === 'token') return seen[0] ? { token: seen[0].seen, at: seen[0].at } : null;
    return refs.length === 0 ? null : { wallets: seen.map((one) => ({ ...one })) };
  };
}

/** The token that an NFT write names, or the wallets that a write of tokens names. */
function refsOf({ family, fields }: WriteDescription): Ref[] {
  if (family === 'nft') {
    const { contractId, tokenId } = fields;
    return contractId == null || tokenId == null ? [] : [{ kind: 'token', contractId, tokenId }];
  }
  const { fromAddr, toAddr } = fields;
  const wallets = new Map<string, Ref>();
  for (const addr of [fromAddr, toAddr])
    if (addr != null && isAddress(addr) && !wallets.has(addressKey(addr)))
      wallets.set(addressKey(addr), { kind: 'wallet', addr });
  return [...wallets.values()];
}

/** Names asked for while a question is under way go with the next one. */
function gathered(db: Db): (name: string) => Promise<Seen | undefined> {
  let next: { names: Set<string>; rows: Promise<Map<string, Seen>> } | undefined;
  let running: Promise<unknown> = Promise.resolve();
  return async (name) => {
    if (!next) {
      const names = new Set<string>();
      const rows = running.then(async () => {
        next = undefined;
        // With a deadline: the next question waits for this one.
        const found = await db.single((q) => lastSeen(q, [...names]));
        return new Map(
          found.map((row) => [
            row.name,
            { name: row.name, at: row.last_started_at, seen: row.last_seen },
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

/** How long an object that was looked at is not looked at again for its absence. */
const REMEMBERED_MS = 60_000;
const REMEMBERED_MAX = 10_000;

/** One look at what was never seen, if the budget has one free; shared, and bounded in time. */
function firstPolls(given: Given): (ref: Ref) => Promise<Seen | undefined> {
  const { upstream, log, ownWallets, firstPollMs } = given;
  const underWay = new Map<string, Promise<Seen | undefined>>();
  const polled = new Map<string, number>();

  const start = (ref: Ref, name: string): Promise<Seen | undefined> | undefined => {
    const lately = polled.get(name);
    if (lately !== undefined && monotonicMs() - lately < REMEMBERED_MS) return undefined;
    // Without a free look the write goes on: the observer looks at whatever an open write touches.
    if (upstream.budget.free() < 1) return undefined;
    if (polled.size >= REMEMBERED_MAX) polled.clear();
    polled.set(name, monotonicMs());
    const observation = poll(given, ref, name)
      .catch((err: unknown) => {
        log.debug({ err }, 'a first look was not recorded');
        return undefined;
      })
      .finally(() => underWay.delete(name));
    underWay.set(name, observation);
    return observation;
  };
  return async (ref) => {
    if (firstPollMs === 0) return undefined;
    if (ref.kind === 'wallet' && ownWallets.has(addressKey(ref.addr))) return undefined;
    const name = targetName(ref);
    const observation = underWay.get(name) ?? start(ref, name);
    if (!observation) return undefined;
    return withDeadline(observation, firstPollMs, () => undefined);
  };
}

/** Looks, and records the look like every other; answers what was seen. */
async function poll(
  { db, observer, upstream }: Given,
  ref: Ref,
  name: string,
): Promise<Seen | undefined> {
  const observation =
    ref.kind === 'wallet'
      ? await upstream.account(ref.addr, 'unknown')
      : await upstream.token(ref.contractId, ref.tokenId, 'unknown');
  if (observation.result === 'inconclusive') return undefined;
  await observer.add(db, [ref]);
  await observer.noteRead(ref, observation);
  return observation.result === 'seen'
    ? { name, at: observation.startedAt, seen: { ...observation.record } }
    : undefined;
}
