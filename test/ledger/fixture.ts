/** Operations as the journal leaves them, the wallets they name, and a ledger over a clone. */
import { asJson, type Db } from '../../src/db/connect.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/log.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import { balancesOf, type Ledger, makeLedger, type Pass } from '../../src/ledger/ledger.ts';
import type { EffectSettings, Operation } from '../../src/operations/operations.ts';
import type { ManualClock } from '../harness/manual-clock.ts';
import { completeRecords } from '../harness/recorded-rows.ts';

export const START = Date.UTC(2026, 0, 1);
export const PLAIN: EffectSettings = { feeMode: 'on_top', operators: new Map() };

/** The nth wallet address; 42 characters. */
export function addr(n: number | string): string {
  return `0xAbCd${String(n).padStart(36, '0')}`;
}

/** A whole operation, accepted, with nothing but what the case names. */
export function operation(given: Partial<Operation>): Operation {
  const empty = {
    idempotencyKey: null,
    reference: null,
    fromAddr: null,
    toAddr: null,
    operationNo: null,
    contractId: null,
    tokenId: null,
    amount: null,
    feeAmount: null,
    reasonType: null,
    tokenUri: null,
    metaData: null,
    extraData: null,
    txAppNo: null,
    txLogNo: null,
    txHash: null,
    errorClass: null,
    errorStatus: null,
    errorCode: null,
    errorMessage: null,
    preImage: null,
    evidence: null,
    sentAt: null,
    sendDeadlineAt: null,
    answeredAt: null,
    effectiveAt: null,
    effectiveBasis: null,
    settledAt: null,
    expiresAt: null,
  };
  return {
    ...empty,
    id: 'op_1',
    kind: 'give',
    state: 'accepted',
    outcome: 'executed',
    source: 'gateway',
    owner: 'app',
    recordedAt: START,
    ambiguous: false,
    inLedger: true,
    ...given,
  };
}

/** Puts operations where the journal keeps them; only what the ledger reads. */
export async function putOperations(owner: Db, given: readonly Partial<Operation>[]) {
  const iso = (at: number | null) => (at === null ? null : isoText(at));
  const rows = given.map(operation).map((o) => ({
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
}

/** Moves operations to a state, as a later answer or a person would. */
export async function setState(owner: Db, ids: readonly string[], state: string) {
  await owner.sql`
    update tallyhook.operations set state = ${state} where id = any(${ids as string[]}::text[])`;
}

/** The ledger of one daemon over that database; its log is silent. */
export async function openLedger(given: {
  db: Db;
  clock: ManualClock;
  daemonId?: string;
  books?: EffectSettings;
  batchMax?: number;
}): Promise<Ledger> {
  const { db, clock, daemonId = 'dmn_1', books = PLAIN, batchMax = 200 } = given;
  const daemon = await registerDaemon(db, daemonId, clock.now(), 15_000);
  const silent = { log: makeLog('silent'), metrics: makeMetrics() };
  const ledger = makeLedger({ db, clock, daemon, effectSettings: books, batchMax, ...silent });
  return {
    async runOnce(now) {
      await completeRecords(db, books);
      return ledger.runOnce(now);
    },
  };
}

/** Runs passes until there is nothing to do; answers what they did together. */
export async function runDry(ledger: Ledger, clock: ManualClock): Promise<Omit<Pass, 'more'>> {
  const sum = { posted: 0, quarantined: 0 };
  for (;;) {
    const pass = await ledger.runOnce(clock.now());
    sum.posted += pass.posted;
    sum.quarantined += pass.quarantined;
    if (pass.posted + pass.quarantined === 0) return sum;
  }
}

/** An executed give of 10 from operator 7 to the first wallet. */
export function give(id: string, given: Partial<Operation> = {}): Partial<Operation> {
  return { id, kind: 'give', operationNo: 7n, toAddr: addr(1), amount: 10n, ...given };
}

/** Balances as text, by the names that were asked. */
export async function balancesIn(db: Db, ...names: string[]): Promise<Record<string, string>> {
  const found = await balancesOf(db, names);
  return Object.fromEntries([...found].map(([name, { balance }]) => [name, balance.toString()]));
}

/** What was set aside, with its cause. */
export async function problemsIn(owner: Db): Promise<Record<string, string>> {
  const rows = await owner.sql<{ id: string; problem: string }[]>`
    select operation_id as id, quarantine_reason as problem from tallyhook.due_postings
    where quarantine_reason is not null
    union all
    select id, problem from tallyhook.posting_requests where problem is not null`;
  return Object.fromEntries(rows.map(({ id, problem }) => [id, problem]));
}

/** What a whole book may never show, counted over every row. */
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
