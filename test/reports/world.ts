/** A database for report tests: inserted operations, which the ledger posts, wallets and drifts. */
import { afterAll, afterEach, beforeEach } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import { type Clock, isoText } from '../../src/kernel/clock.ts';
import type { Ids } from '../../src/kernel/ids.ts';
import { type ObservedHolder, recordHolder, requestPosting } from '../../src/ledger/ledger.ts';
import { accountOfWallet, type EffectSettings } from '../../src/operations/operations.ts';
import {
  DEFAULT_LIMITS,
  LEDGER_SETTING,
  ledgerSetting,
  makeReports,
  type ReportSettings,
} from '../../src/reports/reports.ts';
import { createDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { completeRecords } from '../harness/recorded-rows.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { openStages } from '../harness/stages.ts';

/** 2026-01-01T00:00:00Z, the begin of the period of `report`. */
export const START = Date.UTC(2026, 0, 1);
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** Larger than any machine integer. */
export const HUGE = 10n ** 60n + 7n;

export const ON_TOP: EffectSettings = { feeMode: 'on_top', operators: new Map() };

export function addr(n: number): string {
  return `0x${n.toString(16).padStart(40, '0')}`;
}

/** The times of an operation for which all happened at once. */
export function timesAt(instant: number) {
  const at = isoText(instant);
  return { recorded_at: at, sent_at: at, answered_at: at, effective_at: at };
}

export type Columns = Record<string, string | number | boolean | bigint | null | object>;
export type World = Awaited<ReturnType<typeof makeWorld>>;

type Insert = (table: string, columns: Columns) => Promise<void>;

function insertAs(owner: Db): Insert {
  return async (table, columns) => {
    const names = Object.keys(columns).map((name) => `"${name}"`);
    const places = names.map((_, i) => `$${i + 1}`);
    const values = Object.values(columns).map((v) => (typeof v === 'bigint' ? v.toString() : v));
    const text = `insert into tallyhook.${table} (${names}) values (${places})`;
    await owner.sql.unsafe(text, values as never[]);
  };
}

/** Inserts rows of the earlier stages. */
function makeRows(
  insert: Insert,
  ids: Ids,
  clock: Clock,
  complete: () => Promise<void>,
  quarantine: (id: string, reason: string) => Promise<void>,
) {
  return {
    /** By default a give of 100 by operator 7 to wallet 1, accepted an hour after START. */
    async operation({ quarantine_reason: reason, ...columns }: Columns = {}): Promise<string> {
      const id = ids.next('op');
      const base = { kind: 'give', state: 'accepted', amount: 100, to_addr: addr(1) };
      const rest = { method: 'POST', path: '/', request_body: '', key_held: false, key_id: 'key' };
      const origin = {
        source: 'gateway',
        owner: 'app',
        fingerprint: 'f',
        effective_basis: 'answer',
      };
      const row = {
        id,
        ...rest,
        ...origin,
        ...base,
        operation_no: 7,
        ...timesAt(START + HOUR),
        ...columns,
      };
      await insert('operations', row);
      await complete();
      if (reason) await quarantine(id, String(reason));
      return id;
    },
    /** As the reconciler stores it after a quiet observation now. */
    async wallet(address: string, balance: bigint, columns: Columns = {}): Promise<void> {
      const at = isoText(clock.now());
      const base = { key: address.toLowerCase(), addr: address, status: 1, verdict: 'explained' };
      const balances = { observed_balance: balance, ledger_at_observation: balance };
      const observation = {
        observation_id: 'obs_1',
        observed_at: at,
        observation_ended_at: at,
        consistent_at: at,
        quiet_at: at,
        opened_at: at,
      };
      await insert('wallets', { ...base, ...balances, ...observation, ...columns });
    },
    async drift(address: string, amount: bigint, columns: Columns = {}): Promise<string> {
      const id = ids.next('drf');
      const at = isoText(clock.now());
      const times = { suspected_at: at, opened_at: at, window_to: at };
      const base = { id, wallet_key: address.toLowerCase(), addr: address, state: 'open' };
      const amounts = { amount, amount_min: amount, amount_max: amount };
      const rest = { evidence: {}, cause: 'made_elsewhere' };
      await insert('drifts', { ...base, ...amounts, ...rest, ...times, ...columns });
      return id;
    },
  };
}

/** An opening balance that took effect before START. */
function opening(wallet: string, amount: bigint) {
  return {
    id: `opening:${wallet.toLowerCase()}`,
    kind: 'opening' as const,
    account: accountOfWallet(wallet),
    counter: 'opening',
    amount,
    effectiveAt: START - DAY,
    effectiveBasis: 'observed',
    requestedBy: 'reconciler',
  };
}

/** A database with a ledger and reports, at noon of the first day. */
export async function makeWorld(
  input: { effects?: EffectSettings; settings?: Partial<ReportSettings> } = {},
) {
  const database = await createDatabase();
  const { db, owner } = database;
  const effects = input.effects ?? ON_TOP;
  const clock = manualClock(START + 12 * HOUR);
  const random = seededRandom(7);
  const stages = await openStages(db, { clock, random, aliveMs: DAY, settings: { effects } });
  const { ids, outbox, ledger } = stages;
  const settings = { ...DEFAULT_LIMITS, ...input.settings };
  const reports = makeReports({ db, reads: db, clock, ids, outbox, settings });
  const insert = insertAs(owner);
  const value = ledgerSetting(effects);
  await insert('installation', { name: LEDGER_SETTING, value, set_at: isoText(START) });
  return {
    ...database,
    ...makeRows(
      insert,
      ids,
      clock,
      () => completeRecords(owner, effects),
      async (id, reason) => {
        await owner.sql`
        update tallyhook.due_postings
        set quarantine_reason = ${reason}, quarantined_at = ${isoText(clock.now())}
        where operation_id = ${id}`;
      },
    ),
    clock,
    ids,
    outbox,
    reports,
    settings,
    insert,
    /** Runs SQL as the owner of the database. */
    async sql(text: string): Promise<void> {
      await owner.sql.unsafe(text);
      await completeRecords(owner, effects);
    },
    async post(): Promise<void> {
      await completeRecords(owner, effects);
      while ((await ledger.runOnce(clock.now())).posted > 0) clock.advance(1);
    },
    /** @param seenAt of the observation that it rests on; by default older than everything */
    open: (wallet: string, amount: bigint, seenAt?: number) => {
      const seen = seenAt === undefined ? null : { at: seenAt, version: 0n };
      const request = {
        ...opening(wallet, amount),
        ...(seen ? { effectiveAt: seen.at, seen } : {}),
      };
      return db.begin((tx) => requestPosting(tx, request, clock.now()));
    },
    /** As the reconciler does after an observation that began at `observedAt`. */
    hold: (token: { contractId: bigint; tokenId: bigint }, owner: string | null, at: number) => {
      const unknown = { isNew: false, txHash: null, notBefore: null };
      const holder: ObservedHolder = { ...token, owner, ...unknown, observedAt: at };
      return db.begin((tx) => recordHolder(tx, holder, clock.now()));
    },
    /** The reconciliation of a period; by default of the first day. */
    report: (from = START, to = from + DAY) =>
      reports.makeReconciliation({ from, to, requestedBy: 'finance' }),
  };
}

/** A balanced database: openings, a give, a deduction and a transfer with fees. */
export async function balancedWorld(input: Parameters<typeof makeWorld>[0] = {}) {
  const world = await makeWorld(input);
  await world.open(addr(1), 0n);
  await world.open(addr(2), HUGE);
  await world.operation({ reason_type: 'welcome', tx_app_no: 1, tx_log_no: HUGE });
  await world.operation({
    kind: 'receive_from',
    from_addr: addr(2),
    to_addr: null,
    operation_no: null,
    amount: 30,
    fee_amount: 2,
    reason_type: 'shop',
    tx_log_no: 2,
  });
  await world.operation({
    kind: 'transfer',
    from_addr: addr(2),
    to_addr: addr(1),
    operation_no: null,
    amount: 50,
    fee_amount: 3,
    reason_type: null,
    tx_log_no: 3,
  });
  await world.post();
  await world.wallet(addr(1), 150n);
  await world.wallet(addr(2), HUGE - 32n - 53n);
  return world;
}

/** A world for the tests of one file, dropped after them. */
export async function useWorld(made = makeWorld()): Promise<World> {
  const world = await made;
  afterAll(() => world.drop());
  return world;
}

/** A new world for each test, dropped after it. Use it inside tests and hooks only. */
export function useEachWorld(make = makeWorld): World {
  const world = {} as World;
  beforeEach(async () => {
    Object.assign(world, await make());
  });
  afterEach(() => world.drop());
  return world;
}
