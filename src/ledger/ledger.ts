/**
 * What we hold to be true: double entry. One elected writer posts executed operations and wanted
 * postings in set-based batches, each once. What is unposted is found by its absence; a row that
 * cannot be posted is quarantined with its cause and never stops its neighbours. Nothing is ever
 * changed: corrections are reversals. Postgres itself refuses whatever would not balance.
 */
import type { Db, Queryable, Tx } from '../db/connect.ts';
import { acquireLease, type Daemon, lockLease } from '../db/leases.ts';
import { DatabaseError } from '../db/sqlstate.ts';
import { assert } from '../kernel/assert.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import {
  accountOfWallet,
  type EffectSettings,
  type Operation,
  walletKeysOf,
} from '../operations/operations.ts';
import { makeBatch } from './batch.ts';
import { isAbsorbed, isLate } from './opening-rule.ts';
import { listOverlooked, openingsOf } from './opening-store.ts';
import { type Problem, planWork, type Work } from './plan.ts';
import { accountKind } from './posting.ts';
import type { PostingRequest } from './posting-request.ts';
import * as store from './posting-store.ts';

export type { EffectSettings } from '../operations/operations.ts';
export {
  type Account,
  type Balance,
  balancesOf,
  type Entry,
  listAccounts,
  listTransactions,
  sumPostingRequests as postingRequestOf,
  type Transaction,
  type TransactionFilter,
  type TrialLine,
  trialBalance,
} from './balance-store.ts';
export { isHeldByOpening, isPosted, type Opening, openingId } from './opening-rule.ts';
export { openingsOf } from './opening-store.ts';
export {
  countUnposted,
  listMovements,
  type Movement,
  type TrialPage,
  trialBalancePage,
} from './page-store.ts';
export type { PostingRequest } from './posting-request.ts';
export { addDuePostings, listDueOn, timesPosted } from './posting-store.ts';

export interface Pass {
  /** Rows that were posted, reversed or opened. */
  posted: number;
  /** Rows that were taken out of the work with their cause. */
  quarantined: number;
  /** Whether another pass has something to do at once. */
  more: boolean;
}

export interface Ledger {
  /**
   * One pass of the writer: at most one batch. Does nothing while another daemon holds the lease.
   * @throws DatabaseError when the database is away or refuses for a reason that is no row's own
   */
  runOnce(now: Instant): Promise<Pass>;
}

const LEASE = 'ledger';
const LEASE_MS = 10_000;
const BATCH_MAX = 500;
/** The backlog is counted up to here. */
const BACKLOG_MAX = 1_000;
const NOTHING: Pass = { posted: 0, quarantined: 0, more: false };

/** The ledger of one daemon. */
export function makeLedger(given: {
  db: Db;
  daemon: Daemon;
  clock: Clock;
  effectSettings: EffectSettings;
  log: Log;
  metrics: Metrics;
  /** Rows of one batch at most. */
  batchMax?: number;
}): Ledger {
  const { db, daemon, clock, effectSettings, log, metrics, batchMax = BATCH_MAX } = given;
  const lease = heldLease(db, daemon);
  // Halved when a batch is refused, doubled when one is posted: so a bad row is found alone.
  let size = batchMax;

  /** Posts the first rows that are due; fewer, down to one, while the database refuses them. */
  async function postNext(fence: bigint): Promise<Pass> {
    for (;;) {
      let work: Work | undefined;
      try {
        const { posted, problems } = await db.begin(async (tx) => {
          await lockLease(tx, LEASE, fence);
          work = await readWork(tx, size);
          return postBatch(tx, work, effectSettings, clock);
        });
        const more = posted + problems.length >= size;
        size = Math.min(batchMax, size * 2);
        for (const problem of problems) log.error(problem, 'a posting was quarantined');
        return { posted, quarantined: problems.length, more };
      } catch (error) {
        const first = firstOf(work);
        if (!first || !isOfTheRows(error)) throw error;
        if (size > 1) {
          size = Math.ceil(size / 2);
          continue;
        }
        const problem = { ...first, problem: error.message };
        await db.begin(async (tx) => {
          await lockLease(tx, LEASE, fence);
          await takeOut(tx, problem);
        });
        log.error(problem, 'a posting was quarantined');
        return { posted: 0, quarantined: 1, more: true };
      }
    }
  }

  return {
    async runOnce(now) {
      const due = await store.countDue(db, BACKLOG_MAX);
      metrics.backlog.set({ stage: 'ledger' }, due);
      const fence = due > 0 ? await lease.take(now) : undefined;
      if (fence === undefined) return NOTHING;
      try {
        return await postNext(fence);
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'lease_lost') throw error;
        lease.forget();
        return NOTHING;
      }
    },
  };
}

/** The writer's lease, asked for again only when half of it is over. */
function heldLease(db: Db, daemon: Daemon) {
  let held: { fence: bigint; until: Instant } | undefined;
  return {
    async take(now: Instant): Promise<bigint | undefined> {
      if (held && now < held.until - LEASE_MS / 2) return held.fence;
      const fence = await acquireLease(db, LEASE, daemon, now, LEASE_MS);
      held = fence === undefined ? undefined : { fence, until: now + LEASE_MS };
      return fence;
    },
    forget() {
      held = undefined;
    },
  };
}

/**
 * Asks for a posting inside the caller's transaction; the writer posts it like everything else.
 * Wanting the same id twice is harmless.
 * @param wantedAt the present; postings are made in this order
 */
export async function requestPosting(
  tx: Tx,
  wanted: PostingRequest,
  requestedAt: Instant,
): Promise<void> {
  for (const name of [wanted.account, wanted.counter]) accountKind(name);
  assert(wanted.reverses == null || wanted.kind === 'reversal', 'only a reversal reverses');
  await store.insertPostingRequests(tx, [wanted], requestedAt);
}

/** Wanted postings come first: they are few, and reconciliation waits for them. */
async function readWork(tx: Tx, limit: number): Promise<Work> {
  const wanted = await store.listPostingRequestsDue(tx, limit);
  const rest = limit - wanted.length;
  const operations = rest > 0 ? await store.listDueOperations(tx, rest) : [];
  const standing = await store.listStanding(tx, operations, wanted);
  // Read last: an opening that is not seen here is posted later, and finds these then.
  const late = operations.filter((due) => isLate(due.operation, due.timesPosted));
  const accounts = late.flatMap((due) => due.effects.map(({ account }) => account));
  const undone = standing.flatMap(({ effects }) => effects.map(({ account }) => account));
  const openings = await openingsOf(tx, [...accounts, ...undone]);
  const overlooked = await listOverlooked(tx, wanted);
  return { wanted, operations, standing, openings, overlooked };
}

/** The accounts of the wallets that a write changes once executed. */
function walletAccountsOf(operation: Operation, effectSettings: EffectSettings): string[] {
  return walletKeysOf(operation, effectSettings).map(accountOfWallet);
}

/**
 * Of these writes, the ids of those that no observation has to confirm: all their wallets were
 * opened
 * after they happened, or are not opened yet and will be.
 * @param before what happened before this instant is older than any opening to come
 */
export async function listAbsorbed(
  db: Queryable,
  operations: readonly Operation[],
  effectSettings: EffectSettings,
  before: Instant,
): Promise<Set<string>> {
  const accounts = operations.flatMap((operation) => walletAccountsOf(operation, effectSettings));
  const openings = await openingsOf(db, accounts);
  const absorbed = operations.filter((operation) =>
    isAbsorbed(operation, walletAccountsOf(operation, effectSettings), openings, before),
  );
  return new Set(absorbed.map(({ id }) => id));
}

async function postBatch(tx: Tx, work: Work, effectSettings: EffectSettings, clock: Clock) {
  const plan = planWork(work, effectSettings);
  const head = await store.readHead(tx);
  const recordedAt = Math.max(clock.now(), head.recordedAt + 1);
  const batch = makeBatch(plan, head.transactionId);
  if (batch.accounts.length + batch.movements.length > 0) {
    await store.insertBatch(tx, batch, { batchId: head.batchId + 1n, recordedAt });
  }
  await store.removeDue(tx, [...plan.operationIds, ...plan.unchangedIds]);
  await store.insertPostingRequests(tx, plan.corrections, recordedAt);
  await store.markRequestsPosted(tx, plan.postingRequestIds, recordedAt);
  for (const problem of plan.problems) await takeOut(tx, problem);
  return {
    problems: plan.problems,
    posted: plan.operationIds.length + plan.postingRequestIds.length,
  };
}

function takeOut(tx: Tx, { of, id, problem }: Problem): Promise<void> {
  return of === 'operation'
    ? store.quarantineDue(tx, id, problem)
    : store.quarantineRequest(tx, id, problem);
}

function firstOf(work: Work | undefined): Omit<Problem, 'problem'> | undefined {
  const [wanted] = work?.wanted ?? [];
  if (wanted) return { of: 'wanted', id: wanted.id };
  const [due] = work?.operations ?? [];
  return due ? { of: 'operation', id: due.operation.id } : undefined;
}

/** True when the rows are to blame: bad data, a constraint, a limit, a guard that is about them. */
function isOfTheRows(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && /^(?:21|22|23|54|TH00[1235])/.test(error.code);
}
