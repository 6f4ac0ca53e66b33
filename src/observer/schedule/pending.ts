/**
 * When pending targets are polled next: where a poll is expected to buy most, by the price of a
 * poll and what was learned of how long writes take to show. Being wrong costs polls, or time; what
 * a poll must show is decided by `reconciler.read_lag_ms` alone, never by what was learned.
 */
import { asJson, type Db, type Queryable, type Tx } from '../../db/connect.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { findService } from '../service/service.ts';
import { availableSinceOf, runningMs } from '../service/state.ts';
import { expectedWaits, learnWait, pendingGapS, type Waits } from './hazard.ts';
import type { PollIntervals } from './price.ts';
import { PENDING_WEIGHT } from './price.ts';

/** Something that a poll is expected to show. */
export interface Wait {
  /**
   * The kind of the operation; `balance` for the balance of a wallet; `confirmation` for a second
   * poll that agrees with a first one.
   */
  kind: string;
  contractId?: bigint | null;
  since: Instant;
}

export interface PendingPolls {
  /**
   * When to poll again.
   * @param polledAt when the last poll of the target began
   * @param requests what a poll costs
   */
  nextAt(wait: Wait, polls: { polledAt: Instant; now: Instant; requests?: number }): Instant;
  /**
   * A poll that began at `shownAt` has shown it, one that began at `notAt` had not. To be called
   * after the commit of what was concluded of it.
   */
  learn(wait: Wait, polls: { notAt: Instant | null; shownAt: Instant }): void;
}

interface Deps {
  db: Db;
  clock: Clock;
  settings: PollIntervals;
  pricing: () => Promise<{ price: number }>;
}

/** A gap is at least this part of the age, so that an old operation costs little. */
const AGE_SHARE = 1 / 120;
/** How often what was learned is stored, and read again; what a crash loses. */
const STORE_MS = 5_000;
/** Between storing, more is not learned. */
const LEARNED_MAX = 1_000;

interface Learned {
  kind: string;
  contractId: bigint | null;
  fromS: number;
  toS: number;
}

/** Returns the present schedule; to be asked for again each pass. */
export function makePendingPolls({ db, clock, settings, pricing }: Deps) {
  let learned: Learned[] = [];
  let waits = new Map<string, Waits>();
  let readAt = Number.NEGATIVE_INFINITY;
  const readAgain = async (now: Instant) => {
    const batch = learned;
    learned = [];
    waits = batch.length > 0 ? await store(db, batch, now) : await loadWaits(db);
    readAt = now;
  };
  return async (): Promise<PendingPolls & { availableSince: Instant }> => {
    const now = clock.now();
    if (now < readAt || now >= readAt + STORE_MS) await readAgain(now);
    const [{ price }, outage] = await Promise.all([pricing(), findService(db)]);
    return {
      availableSince: availableSinceOf(outage),
      nextAt: (wait, { polledAt, now: at, requests = 1 }) => {
        const ageMs = runningMs(outage, wait.since, polledAt);
        const cost = (price * requests) / PENDING_WEIGHT;
        const gapMs = pendingGapS(expectedOf(waits, wait), ageMs / 1000, cost) * 1000;
        return boundedAt(settings, { gapMs, ageMs, polledAt, now: at });
      },
      learn: ({ kind, contractId = null, since }, { notAt, shownAt }) => {
        if (learned.length >= LEARNED_MAX) return;
        const fromS = runningMs(outage, since, notAt ?? since) / 1000;
        const toS = runningMs(outage, since, shownAt) / 1000;
        if (toS > 0) learned.push({ kind, contractId, fromS: Math.min(fromS, toS), toS });
      },
    };
  };
}

/**
 * Within the bounds of the settings. A poll follows the last one no sooner than that took to be
 * processed, so that pending targets never bury the reconciler.
 */
export function boundedAt(
  { pendingMinMs, pendingMaxMs }: PollIntervals,
  poll: { gapMs: number; ageMs: number; polledAt: Instant; now: Instant },
): Instant {
  const { gapMs, ageMs, polledAt, now } = poll;
  const leastMs = Math.max(pendingMinMs, ageMs * AGE_SHARE);
  const boundedMs = Math.max(leastMs, Math.min(Math.max(pendingMaxMs, leastMs), gapMs));
  return Math.round(Math.max(now + Math.max(pendingMinMs, now - polledAt), polledAt + boundedMs));
}

const nameOf = (kind: string, contractId: bigint | null) => `${kind}:${contractId ?? ''}`;

function expectedOf(
  waits: ReadonlyMap<string, Waits>,
  { kind, contractId = null }: Pick<Wait, 'kind' | 'contractId'>,
): Waits {
  const own = contractId === null ? undefined : waits.get(nameOf(kind, contractId));
  return expectedWaits(own, waits.get(nameOf(kind, null)));
}

/** Adds what was learned to what is stored; returns all. Another daemon may have learned too. */
async function store(db: Db, batch: readonly Learned[], now: Instant): Promise<Map<string, Waits>> {
  return db.begin(async (tx) => {
    await lockWaits(tx);
    const waits = await loadWaits(tx);
    const changed = new Map<string, Waits>();
    for (const { kind, contractId, fromS, toS } of batch) {
      const expected = expectedOf(waits, { kind, contractId });
      const names = [
        nameOf(kind, null),
        ...(contractId === null ? [] : [nameOf(kind, contractId)]),
      ];
      for (const name of names) {
        const after = learnWait(waits.get(name), { fromS, toS, expected });
        waits.set(name, after);
        changed.set(name, after);
      }
    }
    await saveWaits(tx, changed, now);
    return waits;
  });
}

/** Of so many kinds and contracts; of others it is forgotten, the one not seen longest first. */
const NAMES_MAX = 500;
const DIGITS = 1e6;

async function loadWaits(db: Queryable): Promise<Map<string, Waits>> {
  const rows = await db.sql<{ name: string; counts: number[] }[]>`
    select name, counts from tallyhook.waits`;
  return new Map(rows.map(({ name, counts }) => [name, counts]));
}

/** Serializes daemons that learn, until the end of the transaction. */
async function lockWaits(tx: Tx): Promise<void> {
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.waits'))`;
}

async function saveWaits(tx: Tx, changed: ReadonlyMap<string, Waits>, now: Instant): Promise<void> {
  const rows = [...changed].map(([name, counts]) => ({
    name,
    counts: counts.map((count) => Math.round(count * DIGITS) / DIGITS),
  }));
  await tx.sql`
    insert into tallyhook.waits as w (name, counts, learned_at)
    select name, counts, ${isoText(now)} from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x(name text, counts jsonb)
    on conflict (name) do update set counts = excluded.counts, learned_at = excluded.learned_at`;
  await tx.sql`
    delete from tallyhook.waits where name in (
      select name from tallyhook.waits order by learned_at desc, name offset ${NAMES_MAX})`;
}
