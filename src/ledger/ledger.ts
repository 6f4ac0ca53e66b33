/**
 * Double-entry bookkeeping. The daemon that holds the lease posts executed operations and posting
 * requests in batches, each exactly once. A row that cannot be posted is quarantined with the
 * reason. Entries never change, corrections are reversals; triggers in the database refuse anything
 * that does not balance.
 */
import type { Db, Tx } from '../db/connect.ts';
import type { Context } from '../db/context.ts';
import { type Daemon, isLeaseLost, lockLease, makeHeldLease } from '../db/leases.ts';
import { DatabaseError } from '../db/sqlstate.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { assert } from '../kernel/errors.ts';
import { accountKey, type EffectSettings, lockDuePostings } from '../operations/operations.ts';
import {
  type Beginning,
  beginPass,
  type Head,
  insertPostingRequests,
  listDueOperations,
  listOriginals,
  quarantine,
  writePlan,
} from './batch.ts';
import { makeEvidenceChain } from './chain/evidence.ts';
import { type AnnounceFeeRules, makeFeeRules } from './fee-rules.ts';
import {
  isBackdated,
  isPosted,
  listFirstEntries,
  listMissedEntries,
  readOpenings,
} from './openings.ts';
import { makeOperatorWallets, type OnMovedGives } from './operator-wallets.ts';
import { type Plan, type Problem, planWork, type Work } from './plan.ts';
import { accountKind, effectiveTimeOf, type PostingRequest } from './posting.ts';
import { tokensOf } from './tokens/journal.ts';
import { listDueHolders, readJournals } from './tokens/movements.ts';

export {
  listAccounts,
  listTransactions,
  type Transaction,
  trialBalancePage,
} from './accounts.ts';
export { countUnposted, hasDuePostings, hasWork, releasePosting } from './batch.ts';
export {
  COMMODITY_LINE,
  daysLine,
  journalPosting,
  journalTransaction,
  namesOf,
} from './chain/hledger.ts';
export { exportJournal, exportLedger, type OnProgress, verifyLedger } from './chain/verify.ts';
export { NotAnExport, verifyFile } from './chain/verify-file.ts';
export { type Anchor, parseAnchor, type Verdict } from './chain/walk.ts';
export { type DayEnd, findDayEnd, keepDayEnd } from './day-ends.ts';
export {
  type AnnounceFeeRules,
  findFeeRules,
  setFeeRules,
} from './fee-rules.ts';
export {
  entriesBefore,
  listIncludedInOpenings,
  openingAmounts,
  openingId,
  openingsOf,
} from './openings.ts';
export {
  countProposedOperators,
  type MappedOperator,
  makeOperatorMappings,
  type OperatorMappings,
} from './operator-mappings.ts';
export { listMovedGives, type MovedGive, type OnMovedGives } from './operator-wallets.ts';
export type { PostingRequest } from './posting.ts';
export type { ObservedHolder } from './tokens/journal.ts';
export { listMovements, listMovementsOf, recordHolder } from './tokens/movements.ts';

export interface Pass {
  /** Rows that were posted, reversed or opened. */
  posted: number;
  /** Rows that were quarantined. */
  quarantined: number;
  /** Whether another pass has work now. */
  more: boolean;
}

export interface Ledger {
  /**
   * Makes at most one batch, of postings or of evidence; does nothing while another daemon holds
   * the lease. When the signal aborts, a refused batch is not tried again.
   * @throws DatabaseError for an error that no single row causes, such as a lost connection
   */
  runOnce(now: Instant, signal?: AbortSignal): Promise<Pass>;
}

const LEASE = 'ledger';
const LEASE_MS = 10_000;
const BATCH_MAX = 500;
const IDLE: Pass = { posted: 0, quarantined: 0, more: false };

interface Deps extends Pick<Context, 'db' | 'clock' | 'log'> {
  daemon: Daemon;
  effectSettings: EffectSettings;
  /** Rows of one batch at most. */
  batchMax?: number;
  /** Called when every write is under the fee rules that are set, once for each change of them. */
  announceFeeRules?: AnnounceFeeRules;
  /** Called for each batch of gives that are posted from the wallet of their operator now. */
  onMovedGives?: OnMovedGives;
}

export function makeLedger(deps: Deps): Ledger {
  const { db, daemon, log } = deps;
  const lease = makeHeldLease(db, { name: LEASE, daemon, ttlMs: LEASE_MS, log });
  const locking = { ...deps, lockLease: (tx: Tx, fence: bigint) => lockLease(tx, LEASE, fence) };
  const feeRules = makeFeeRules(locking);
  const operatorWallets = makeOperatorWallets(locking);
  const postNext = makePosting(deps, feeRules.isDue, operatorWallets.notePosted);
  return {
    async runOnce(now, signal) {
      const fence = await lease.take(now);
      if (fence === undefined) return IDLE;
      try {
        const { feesDue, ...pass } = await postNext(fence, now, signal);
        // Other settings wait until all is posted.
        if (pass.more || signal?.aborted) return pass;
        const isDue = feesDue || operatorWallets.isDue(now);
        if (!isDue) return pass;
        const { reposted, more } = feesDue
          ? await feeRules.runOnce(fence)
          : await operatorWallets.runOnce(fence, now);
        return { ...pass, posted: pass.posted + reposted, more };
      } catch (error) {
        if (!isLeaseLost(error)) throw error;
        lease.forget();
        return IDLE;
      }
    },
  };
}

/** Posts the oldest due rows as one batch; without any, the evidence that waits. */
function makePosting(
  deps: Deps,
  areFeesDue: ReturnType<typeof makeFeeRules>['isDue'],
  onPosted: (accounts: ReadonlySet<string>) => void,
) {
  const { db, clock, effectSettings, log, batchMax = BATCH_MAX } = deps;
  const evidence = makeEvidenceChain(deps);
  // Halved after a refused batch until the bad row is alone, doubled after each success.
  let size = batchMax;

  /** Fewer, down to one, while the database refuses them. */
  return async function postNext(
    fence: bigint,
    now: Instant,
    signal?: AbortSignal,
  ): Promise<Pass & { feesDue: boolean }> {
    while (!signal?.aborted) {
      let work: Work | undefined;
      try {
        const { posted, unchanged, problems, accounts, more, feesDue } = await db.begin(
          async (tx) => {
            const due = await lockDue(tx, fence, { limit: size, areFeesDue });
            work = await readWork(tx, due);
            const done = await postBatch(tx, work, due.head, { effectSettings, clock });
            // A batch of postings takes the evidence as well.
            const more = done.isEmpty && (await evidence.extend(tx, { ...due, now }));
            return { ...done, more, feesDue: due.feesDue };
          },
        );
        const isFull = posted + unchanged + problems.length >= size;
        size = Math.min(batchMax, size * 2);
        onPosted(accounts);
        for (const problem of problems) log.error(problem, 'a posting was quarantined');
        return { posted, quarantined: problems.length, more: more || isFull, feesDue };
      } catch (error) {
        const first = firstDue(work);
        if (!first || !isRowError(error)) throw error;
        const wasAlone = size === 1;
        size = Math.ceil(size / 2);
        if (!wasAlone) continue;
        const problem = { ...first, problem: error.message };
        await quarantineAlone(db, fence, problem, clock.now());
        log.error(problem, 'a posting was quarantined');
        return { posted: 0, quarantined: 1, more: true, feesDue: false };
      }
    }
    return { ...IDLE, more: true, feesDue: false };
  };
}

/**
 * Requests a posting inside the caller's transaction. Requesting the same id again changes nothing.
 * @param requestedAt the present; requests are posted in this order
 */
export async function requestPosting(
  tx: Tx,
  request: PostingRequest,
  requestedAt: Instant,
): Promise<void> {
  for (const name of [request.account, request.counter]) accountKind(name);
  assert(request.reverses == null || request.kind === 'reversal', 'only a reversal reverses');
  await insertPostingRequests(tx, [request], requestedAt);
}

async function quarantineAlone(
  db: Db,
  fence: bigint,
  problem: Problem,
  at: Instant,
): Promise<void> {
  await db.begin(async (tx) => {
    await lockLease(tx, LEASE, fence);
    await quarantine(tx, problem, at);
  });
}

interface Due extends Beginning {
  /** Ids of operations. */
  due: string[];
  limit: number;
}

/** Locks the lease and the due rows, in one round trip. @throws Failure `lease_lost` */
async function lockDue(
  tx: Tx,
  fence: bigint,
  { limit, areFeesDue }: { limit: number; areFeesDue: ReturnType<typeof makeFeeRules>['isDue'] },
): Promise<Due> {
  const [beginning, due] = await Promise.all([
    beginPass(tx, { name: LEASE, fence }, limit, areFeesDue(tx.sql)),
    lockDuePostings(tx, limit),
  ]);
  return { ...beginning, due, limit };
}

/** Reads what is due; requests first, because they are few and reconciliation waits for them. */
async function readWork(tx: Tx, { requests, due, limit, hasHolders }: Due): Promise<Work> {
  const remaining = limit - requests.length;
  const operations = await listDueOperations(tx, due.slice(0, remaining));
  const reversed = operations.filter(
    ({ operation, timesPosted }) => !operation.inLedger || isPosted(timesPosted),
  );
  const originals = await listOriginals(
    tx,
    reversed.map(({ operation, timesPosted: posting }) => ({ id: operation.id, posting })),
    requests,
  );
  // Read last: an opening that is requested after this read finds these postings itself.
  const backdated = operations.filter((due) => isBackdated(due.operation, due.timesPosted));
  const entries = backdated.flatMap(({ operation, effects }) => {
    const { effectiveAt } = effectiveTimeOf(operation);
    return operation.inLedger ? effects.map(({ account }) => ({ account, effectiveAt })) : [];
  });
  const opened = requests.flatMap(({ account, seen }) => (seen ? [account] : []));
  const touched = [...entries, ...originals.flatMap(({ effects }) => effects)];
  const accounts = [...touched.map(({ account }) => account), ...opened];
  const first = await listFirstEntries(tx, requests);
  const room = remaining - operations.length;
  const holders = hasHolders && room > 0 ? await listDueHolders(tx, due, room) : [];
  const written = operations.map(({ operation }) => operation);
  const tokens = tokensOf(written, holders);
  return {
    requests,
    operations,
    originals,
    ...(await readOpenings(tx, accounts, [...entries, ...first])),
    missedEntries: await listMissedEntries(tx, requests),
    holders,
    journals: await readJournals(tx, tokens),
  };
}

async function postBatch(
  tx: Tx,
  work: Work,
  head: Head,
  { effectSettings, clock }: { effectSettings: EffectSettings; clock: Clock },
) {
  const plan = planWork(work, effectSettings);
  const { recordedAt, isEmpty } = await writePlan(tx, plan, head, clock.now());
  for (const problem of plan.problems) await quarantine(tx, problem, recordedAt);
  return {
    isEmpty,
    problems: plan.problems,
    accounts: accountsOf(plan),
    posted: plan.operationIds.length + plan.postingRequestIds.length + plan.holderIds.length,
    unchanged: plan.unchangedIds.length,
  };
}

/** The keys of the accounts of operators that it posts on, and of the wallets that it opens. */
function accountsOf({ drafts, opened }: Plan): Set<string> {
  const names = drafts.flatMap(({ kind, effects }) =>
    effects.flatMap(({ account }) =>
      kind === 'opening' || account.startsWith('operator:') ? [account] : [],
    ),
  );
  return new Set([...names, ...opened].map(accountKey));
}

function firstDue(work: Work | undefined): Omit<Problem, 'problem'> | undefined {
  const [request] = work?.requests ?? [];
  if (request) return { of: 'posting_request', id: request.id };
  const [due] = work?.operations ?? [];
  if (due) return { of: 'operation', id: due.operation.id };
  const [holder] = work?.holders ?? [];
  return holder && { of: 'observed_holder', id: holder.id.toString() };
}

/** True when a row causes the error: bad data, a constraint, a limit, or a trigger of ours. */
function isRowError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && /^(?:21|22|23|54|TH00[1235])/.test(error.code);
}
