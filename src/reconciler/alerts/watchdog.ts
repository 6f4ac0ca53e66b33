/**
 * Conditions that need no rule of the configuration: late polls, stuck operations and vanished
 * wallets.
 */

import type { Db, Tx } from '../../db/connect.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { countLate, type Observer } from '../../observer/observer.ts';
import {
  findOperations,
  NFT_KINDS,
  operationFields,
  TOKEN_KINDS,
} from '../../operations/operations.ts';
import { listVanished } from '../wallets/wallet.ts';
import {
  type Alert,
  type Condition,
  type SettleTimes,
  type StuckSettings,
  stuckAfterMs,
} from './rule.ts';
import * as store from './store.ts';

export const LATE = 'observer.late';
export const STUCK = 'operation.stuck';
export const VANISHED = 'wallet.vanished';

/** How many times the guaranteed age. */
const LATE_FACTOR = 2;
/** Counting the targets may take at most this share of the time. */
const COUNT_SHARE = 0.01;
const COUNT_MIN_MS = 5_000;

/**
 * Finds whether targets were not polled within twice the guaranteed age: its condition, null if
 * none is late, or undefined if it is not due or the service has not been available for so long.
 */
export function makeLateCheck(deps: { db: Db; clock: Clock; observer: Pick<Observer, 'pricing'> }) {
  const { db, clock, observer } = deps;
  let dueAt = Number.NEGATIVE_INFINITY;
  let cached: Condition | null | undefined;
  return async (now: Instant, availableSince: Instant): Promise<Condition | null | undefined> => {
    const maximumMs = (await observer.pricing()).bounds.maxMs;
    const before = now - LATE_FACTOR * maximumMs;
    if (availableSince > before) return undefined;
    if (now < dueAt && dueAt - now < 3_600_000) return cached;
    const from = clock.now();
    const { targets, oldestPollAt } = await countLate(db, before);
    dueAt = now + Math.max(COUNT_MIN_MS, (clock.now() - from) / COUNT_SHARE);
    const detail = {
      targets,
      observation_age_max_ms: Math.round(maximumMs),
      oldest_poll_at: oldestPollAt === null ? null : isoText(oldestPollAt),
    };
    cached = targets === 0 ? null : { rule: LATE, subject: 'targets', detail };
    return cached;
  };
}

const VANISHED_MAX = 10_000;

/** The wallets that have vanished. */
export async function checkVanished(tx: Tx): Promise<Condition[]> {
  const vanished = await listVanished(tx, VANISHED_MAX);
  return vanished.map(({ key, addr, observedBalance, observedAt }) => ({
    rule: VANISHED,
    subject: key,
    detail: {
      addr,
      last_balance: decimalText(observedBalance),
      last_observed_at: observedAt === null ? null : isoText(observedAt),
    },
  }));
}

/** How far back settled operations count, and how often their times are read. */
const LEARN_MS = 7 * 86_400_000;
const LEARN_EVERY_MS = 60_000;
const STUCK_MAX = 10_000;
const KINDS = [...TOKEN_KINDS, ...NFT_KINDS];

/** Finds the operations that are stuck against the settle times of their kind. */
export function makeStuckCheck({ settings }: { settings: StuckSettings }) {
  let learned: { at: Instant; times: Map<string, SettleTimes> } | undefined;
  return async (
    tx: Tx,
    now: Instant,
    from: Instant,
    raised: readonly Alert[],
  ): Promise<Condition[]> => {
    if (!learned || now < learned.at || now >= learned.at + LEARN_EVERY_MS)
      learned = { at: now, times: await store.settleTimes(tx, KINDS, now - LEARN_MS) };
    const { times } = learned;
    const afterMs = new Map<string, number>(
      KINDS.map((kind) => [kind, stuckAfterMs(times.get(kind), settings)]),
    );
    const before = raised.filter(({ rule }) => rule === STUCK).map(({ subject }) => subject);
    const stuck = await store.listStuck(tx, { now, from, afterMs, before }, STUCK_MAX);
    const known = new Set(before);
    const open = new Set(stuck.map(({ id }) => id));
    const operations = await findOperations(
      tx,
      stuck.flatMap(({ id }) => (known.has(id) ? [] : [id])),
    );
    const kept = raised.filter(({ rule, subject }) => rule === STUCK && open.has(subject));
    const added = stuck.flatMap(({ id, since }): Condition[] => {
      const operation = operations.get(id);
      if (!operation) return [];
      const detail = {
        ...operationFields(operation),
        executed_at: isoText(since),
        stuck_after_ms: afterMs.get(operation.kind) ?? 0,
      };
      return [{ rule: STUCK, subject: id, detail }];
    });
    return [...kept, ...added];
  };
}
