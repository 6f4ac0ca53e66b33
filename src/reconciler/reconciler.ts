/**
 * What the difference means. One elected daemon judges looks in the order in which they started,
 * one transaction per look: the accepted state, drifts, wanted postings, endings of operations and
 * their events are one commit. Nothing is concluded from silence.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Daemon, holdFence, holdLease } from '../db/leases.ts';
import { isAway } from '../db/sqlstate.ts';
import { type Journal, listInStates, NFT_KINDS, TOKEN_KINDS } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Books } from '../ledger/ledger.ts';
import {
  addWallets,
  availableSince,
  type LookToJudge,
  listUnjudged,
  markJudged,
  type Rhythm,
} from '../observer/observer.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type Odds, oddsOf } from './belief.ts';
import { listLessons } from './belief-store.ts';
import { giveMintToPeople, judgeSweep, wantSweeps } from './lost-mints.ts';
import { componentsOf, judgeComponent } from './lost-payments.ts';
import { giveToPeople, isOverdue, quietAfter } from './resolution.ts';
import { judgeToken } from './tokens.ts';
import { walletsOfBooks } from './wallet-books.ts';
import { judgeWallet } from './wallets.ts';

export { countOpenDrifts, type Position, positionsOf } from './position-store.ts';
export { findToken, listTokens, type Token } from './store.ts';
export {
  type Drift,
  findDrift,
  findWallet,
  listDriftActions,
  listDrifts,
  listOpenDrifts,
  listWallets,
  type Wallet,
} from './wallet-store.ts';

export interface ReconcilerSettings extends Rhythm {
  /** L: how long a write may take to show in reads, in milliseconds. */
  readLagMs: number;
  /** How long after its send deadline a write may still be applied by the service. */
  quiescenceMs: number;
  /** How long after that an unexplained unknown outcome is given to people. */
  undecidedAfterMs: number;
}

/** What every judgement needs. */
export interface Context {
  ids: Ids;
  journal: Journal;
  books: Books;
  settings: ReconcilerSettings;
  /** Since when the service answers, as far as known; infinite while it is down. */
  availableSince: Instant;
  /** Since when somebody has judged without a break: nobody waits in vain while nobody judges. */
  judgingSince: Instant;
  /** What lost answers have taught so far. */
  odds: Odds;
}

export interface Reconciler {
  /** One bounded pass. Answers how many looks were judged; 0 while another daemon is the judge. */
  runOnce(now: Instant): Promise<{ judged: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const LOOKS_MAX = 50;
const UNKNOWN_MAX = 200;
const LEARN_EVERY_MS = 600_000;
const BREAK_MS = 120_000;

/** The reconciler of one daemon. */
export function makeReconciler(
  given: Omit<Context, 'availableSince' | 'judgingSince' | 'odds'> & {
    db: Db;
    daemon: Daemon;
    outbox: Outbox;
  },
): Reconciler {
  const { db, daemon, outbox } = given;

  /** Runs one judgement in one snapshot, fenced, with its events in the same commit. */
  async function judge(fence: bigint, work: (tx: Tx) => Promise<EventDraft[]>): Promise<void> {
    await db.begin(
      async (tx) => {
        await holdFence(tx, LEASE, fence);
        await outbox.emit(tx, await work(tx));
      },
      { snapshot: true },
    );
  }

  const judgeLook = (fence: bigint, context: Context, look: LookToJudge, now: Instant) =>
    judge(fence, async (tx) => {
      if (!(await markJudged(tx, look, now)) || look.result === 'inconclusive') return [];
      if (look.kind === 'token') return judgeToken(tx, context, look, now);
      if (look.kind === 'sweep') return judgeSweep(tx, context, look, now);
      return look.result === 'seen' ? judgeWallet(tx, context, look, now) : [];
    });

  let booksObserved = false;
  /** Wallets of our own books are looked at even if nobody watches them. */
  async function observeBooks(now: Instant): Promise<void> {
    if (booksObserved) return;
    await addWallets(db, walletsOfBooks(given.books), now);
    booksObserved = true;
  }

  let judgedAt = Number.NEGATIVE_INFINITY;
  let judgingSince: Instant = 0;
  let learned: { odds: Odds; at: Instant } | undefined;
  /** What was learned, read again now and then. */
  async function odds(now: Instant): Promise<Odds> {
    if (!learned || now >= learned.at + LEARN_EVERY_MS || now < learned.at) {
      const { quiescenceMs, readLagMs } = given.settings;
      learned = { odds: oddsOf(await listLessons(db), quiescenceMs + readLagMs), at: now };
    }
    return learned.odds;
  }

  async function pass(fence: bigint, now: Instant) {
    await observeBooks(now);
    // After a break, as after a start, clocks that wait for looks begin anew.
    if (now - judgedAt > BREAK_MS) judgingSince = now;
    judgedAt = now;
    const since = await availableSince(db);
    const context = { ...given, availableSince: since, judgingSince, odds: await odds(now) };
    const looks = await listUnjudged(db, LOOKS_MAX);
    // One that cannot be judged does not hold up the others; the pass fails when all are done.
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void>) => {
      await work.catch((error: unknown) => {
        if (isAway(error) || isLeaseLost(error)) throw error;
        failures.push(error);
      });
    };
    for (const look of looks) await attempt(judgeLook(fence, context, look, now));
    for (const work of await unknownWork(db, context, now)) await attempt(judge(fence, work));
    if (failures.length > 0) throw failures[0];
    return { judged: looks.length, more: looks.length === LOOKS_MAX };
  }

  return {
    async runOnce(now) {
      const fence = await holdLease(db, LEASE, daemon, now, LEASE_MS);
      if (fence === undefined) return { judged: 0, more: false };
      try {
        return await pass(fence, now);
      } catch (error) {
        if (isLeaseLost(error)) return { judged: 0, more: false };
        throw error;
      }
    },
  };
}

/** What is to be judged about lost answers, one piece of work for each component. */
async function unknownWork(db: Db, context: Context, now: Instant) {
  const unknown = await listInStates(db, ['unknown'], UNKNOWN_MAX);
  const payments = unknown.filter((operation) => TOKEN_KINDS.includes(operation.kind));
  const components = componentsOf(payments, context).map(
    (component) => (tx: Tx) => judgeComponent(tx, context, component, now),
  );
  const overdue = unknown.filter((operation) => {
    if (TOKEN_KINDS.includes(operation.kind)) return false;
    const isNft = NFT_KINDS.includes(operation.kind);
    return isNft ? isOverdue(operation, context, now) : now >= quietAfter(operation, context);
  });
  const mints = unknown.filter(
    (operation) => operation.kind === 'mint_sequential' && !overdue.includes(operation),
  );
  await wantSweeps(db, context, mints, now);
  const evidence = { explanations: 'no evidence within the time set' };
  const forPeople = overdue.map(
    (operation) => (tx: Tx) =>
      operation.kind === 'mint_sequential'
        ? giveMintToPeople(tx, context, operation, now)
        : giveToPeople(tx, context, operation, evidence, now),
  );
  return [...components, ...forPeople];
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}
