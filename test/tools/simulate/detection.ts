/**
 * How many polls of a wallet a change made elsewhere needs until a drift opens, or until one ends
 * because the change takes back an earlier one.
 */
import { addressKey } from '../../../src/kernel/addresses.ts';
import { type Simulation, STEP_MS } from './run.ts';
import { DAY_MS, READ_LAG_MS, type World } from './world.ts';

export interface Detection {
  /** Changes that differed from the ledger for two polls or until they were found. */
  changes: number;
  withinTwoPolls: number;
  /** Polls that the slowest one needed. */
  most: number;
  /** Those that needed more than two. */
  later: string[];
}

/** For so long after a daemon was killed its lease keeps the others from evaluating polls. */
const LEASE_MS = 15_000;

/**
 * Counts the polls that a reconciler could evaluate: none while a killed daemon has the lease, and
 * one of those that several daemons made within a step, since a newer one takes the place of one
 * that waits.
 * A wallet's changes are left out before it was opened, and where another change or a report came
 * between a change and its second poll: then the difference was another one, or none.
 */
export async function detectionOf({ db }: World, simulation: Simulation): Promise<Detection> {
  const { outside, polls, killed } = simulation;
  const isLed = (poll: number) => !killed.some((at) => poll >= at && poll < at + LEASE_MS);
  const found = await instantsOf(db.sql<Instants>`
    select wallet_key as key, e.at
    from tallyhook.drifts cross join lateral (values (opened_at), (closed_at)) as e(at)
    where e.at is not null order by e.at`);
  const opened = await instantsOf(db.sql<Instants>`
    select key, opened_at as at from tallyhook.wallets where opened_at is not null`);
  const detection: Detection = { changes: 0, withinTwoPolls: 0, most: 0, later: [] };
  for (const { addr, amount, at } of outside) {
    const key = addressKey(addr);
    const seen = (polls.get(key) ?? []).filter(
      (poll, n, all) =>
        poll >= at + READ_LAG_MS && isLed(poll) && (all[n + 1] ?? poll + DAY_MS) - poll > STEP_MS,
    );
    const foundAt = found.get(key)?.find((one) => one >= at) ?? Number.POSITIVE_INFINITY;
    const until = Math.min(foundAt, seen[1] ?? Number.POSITIVE_INFINITY);
    const ofWallet = outside.filter((o) => addressKey(o.addr) === key);
    const others = ofWallet.filter((o) => o.at !== at);
    const isOwn = others.every(
      (o) =>
        o.at > until ||
        (o.at < at && found.get(key)?.some((f) => f >= o.at + READ_LAG_MS && f < at)),
    );
    const isReported = ofWallet.some(
      ({ reportedAt = 0 }) => reportedAt >= at && reportedAt < until,
    );
    const isOpen = (opened.get(key)?.[0] ?? Number.POSITIVE_INFINITY) <= at;
    if (!isOpen || !isOwn || isReported) continue;
    const needed = seen.filter((poll) => poll <= foundAt).length;
    detection.changes += 1;
    detection.most = Math.max(detection.most, needed);
    if (needed <= 2) detection.withinTwoPolls += 1;
    else detection.later.push(`${addr} by ${amount} at ${at}: ${needed} polls`);
  }
  return detection;
}

type Instants = { key: string; at: number }[];

async function instantsOf(rows: PromiseLike<Instants>): Promise<Map<string, number[]>> {
  const byKey = Map.groupBy(await rows, ({ key }) => key);
  return new Map([...byKey].map(([key, all]) => [key, all.map(({ at }) => at)]));
}
