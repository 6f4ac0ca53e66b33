/**
 * Inserted operations, and a ledger that posts them: `useLedger` opens one on a new database for
 * each test.
 */

import { afterEach, beforeEach, expect } from 'vitest';
import { asJson, type Db } from '../../src/db/connect.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { type Clock, isoText } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import {
  type AnnounceFeeRules,
  type Ledger,
  makeLedger,
  type Pass,
  type PostingRequest,
  requestPosting,
} from '../../src/ledger/ledger.ts';
import type { EffectSettings, Operation, State } from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { refillOpen } from '../harness/open-operations.ts';
import { completeRecords } from '../harness/recorded-rows.ts';
import { addr, operation, PLAIN, START } from './builders.ts';

export { addr, operation, PLAIN, START };

/** Inserts operations with what the ledger reads of them. */
export async function putOperations(owner: Db, operations: readonly Partial<Operation>[]) {
  const iso = (at: number | null) => (at === null ? null : isoText(at));
  const rows = operations.map(operation).map((o) => ({
    ...o,
    recordedAt: isoText(o.recordedAt),
    answeredAt: iso(o.answeredAt),
    effectiveAt: iso(o.effectiveAt),
    sentAt: iso(o.sentAt),
  }));
  await owner.sql`
    insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint, key_held,
      method, path, request_body, recorded_at, answered_at, effective_at, effective_basis,
      from_addr, to_addr, operation_no, contract_id, token_id, amount, fee_amount, reason_type,
      reference, tx_app_no, tx_log_no, tx_hash,
      sent_at)
    select id, kind, state, source, owner, 'key_1', 'f', false, 'POST', '/v1', '', "recordedAt",
      "answeredAt", "effectiveAt", "effectiveBasis", "fromAddr", "toAddr", "operationNo",
      "contractId", "tokenId", amount, "feeAmount", "reasonType", reference, "txAppNo", "txLogNo",
      "txHash", "sentAt"
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, kind text, state text,
      source text, owner text, "sentAt" timestamptz, "recordedAt" timestamptz,
      "answeredAt" timestamptz, "effectiveAt" timestamptz,
      "effectiveBasis" text, "fromAddr" text, "toAddr" text, "operationNo" numeric,
      "contractId" numeric, "tokenId" numeric, amount numeric, "feeAmount" numeric,
      "reasonType" text, reference text, "txAppNo" numeric, "txLogNo" numeric, "txHash" text)`;
  await refillOpen(owner);
}

/** Changes the state of operations, as a later answer or a decision does. */
export async function setState(owner: Db, ids: readonly string[], state: string) {
  await owner.sql`
    update tallyhook.operations set state = ${state} where id = any(${ids as string[]}::text[])`;
  await refillOpen(owner);
}

interface LedgerInput {
  db: Db;
  clock: Clock;
  daemonId?: string;
  books?: EffectSettings;
  batchMax?: number;
  announceFeeRules?: AnnounceFeeRules;
}

/** The ledger of one daemon; its log is silent. */
export async function openLedger(deps: LedgerInput): Promise<Ledger> {
  const { db, clock, daemonId = 'dmn_1', books = PLAIN, batchMax = 200, announceFeeRules } = deps;
  const daemon = await registerDaemon(db, daemonId, clock.now(), 15_000);
  const silent = { log: makeLog('silent'), metrics: makeMetrics() };
  const announcing = announceFeeRules ? { announceFeeRules } : {};
  return makeLedger({
    db,
    clock,
    daemon,
    effectSettings: books,
    batchMax,
    ...silent,
    ...announcing,
  });
}

/** The same over operations that a test inserts. */
export async function openLedgerOfInserted(deps: LedgerInput): Promise<Ledger> {
  const ledger = await openLedger(deps);
  return {
    async runOnce(now, signal) {
      await completeRecords(deps.db, deps.books ?? PLAIN);
      return ledger.runOnce(now, signal);
    },
  };
}

/** Runs passes until nothing is due; returns their sum. */
export async function runDry(ledger: Ledger, clock: ManualClock): Promise<Omit<Pass, 'more'>> {
  const sum = { posted: 0, quarantined: 0 };
  for (;;) {
    const pass = await ledger.runOnce(clock.now());
    sum.posted += pass.posted;
    sum.quarantined += pass.quarantined;
    if (!pass.more && pass.posted + pass.quarantined === 0) return sum;
  }
}

/** An executed give of 10 from operator 7 to the first wallet. */
export function give(id: string, more: Partial<Operation> = {}): Partial<Operation> {
  return { id, kind: 'give', operationNo: 7n, toAddr: addr(1), amount: 10n, ...more };
}

export interface LedgerRig {
  database: TestDatabase;
  clock: ManualClock;
  ledger: Ledger;
}

/** Opens a database and a ledger before each test; after it the entries are checked as a whole. */
export function useLedger({ startAt = START + 1_000, batchMax = 200 } = {}) {
  const rig = {} as LedgerRig;
  beforeEach(async () => {
    rig.database = await createDatabase();
    rig.clock = manualClock(startAt);
    rig.ledger = await openLedgerOfInserted({ db: rig.database.db, clock: rig.clock, batchMax });
  });
  afterEach(async () => {
    expect(await faultsOf(rig.database.owner)).toEqual(NO_FAULTS);
    await rig.database.drop();
  });
  return Object.assign(rig, {
    put: (...operations: Partial<Operation>[]) => putOperations(rig.database.owner, operations),
    setState: (state: State, ...ids: string[]) => setState(rig.database.owner, ids, state),
    runOnce: () => rig.ledger.runOnce(rig.clock.now()),
    post: () => runDry(rig.ledger, rig.clock),
    request: (...requests: PostingRequest[]) =>
      rig.database.db.begin(async (tx) => {
        for (const [n, one] of requests.entries()) await requestPosting(tx, one, START + n);
      }),
    /** Balances as text, by the given names. */
    async balances(...names: string[]): Promise<Record<string, string>> {
      const found = await balancesOf(rig.database.db, names);
      return Object.fromEntries([...found].map(([name, { balance }]) => [name, `${balance}`]));
    },
    /** What is quarantined, with the reasons. */
    async quarantined(): Promise<Record<string, string>> {
      const rows = await rig.database.owner.sql<{ id: string; reason: string }[]>`
        select operation_id as id, quarantine_reason as reason from tallyhook.due_postings
        where quarantine_reason is not null
        union all
        select id, problem from tallyhook.posting_requests where problem is not null`;
      return Object.fromEntries(rows.map(({ id, reason }) => [id, reason]));
    },
  });
}

/** Violations of the rules of double entry, counted over every row. */
export async function faultsOf(owner: Db): Promise<Record<string, number>> {
  const [row] = await owner.sql<Record<string, number>[]>`
    select
      (select count(*) from (select from tallyhook.entries e
        join tallyhook.accounts a on a.id = e.account_id
        group by transaction_id, asset having sum(amount) <> 0) t)::int as unbalanced,
      (select count(*) from tallyhook.accounts a where balance <> coalesce((
        select sum(amount) from tallyhook.entries where account_id = a.id), 0))::int as adrift,
      (select count(*) from (
        select version, row_number() over w as n, balance_after, sum(amount) over w as running
        from tallyhook.entries window w as (partition by account_id order by version)) e
        where version <> n or balance_after <> running)::int as broken_runs,
      (select count(*) from tallyhook.accounts a where version <> (
        select count(*) from tallyhook.entries where account_id = a.id))::int as wrong_versions,
      (select coalesce(max(id), 0) - count(*) from tallyhook.transactions)::int as id_gaps,
      (select coalesce(max(id), 0) - count(*) from tallyhook.batches)::int as batch_gaps,
      (select count(*) from (select recorded_at, lag(recorded_at) over (order by id) as before
        from tallyhook.batches) b where recorded_at <= before)::int as not_rising,
      (select count(*) from tallyhook.batches b where transactions <> (
        select count(*) from tallyhook.transactions where batch_id = b.id))::int as miscounted`;
  return row ?? {};
}

export const NO_FAULTS = {
  unbalanced: 0,
  adrift: 0,
  brokenRuns: 0,
  wrongVersions: 0,
  idGaps: 0,
  batchGaps: 0,
  notRising: 0,
  miscounted: 0,
};
