/**
 * Reports, their reversals, passes of the ledger and an opening in any order: in the end the wallet
 * holds what was observed and what took effect later. What took effect earlier changes nothing, and
 * the balance as of any time is the observed one less what took effect in between, or unknown.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { type Ledger, openingId, requestPosting } from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import { useDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  addr,
  faultsOf,
  give,
  NO_FAULTS,
  openLedgerOfInserted,
  putOperations,
  runDry,
  START,
  setState,
} from './fixture.ts';

const OBSERVED_AT = START;
const OBSERVED = 1_000n;

const database = await useDatabase();
let clock: ManualClock;
let ledger: Ledger;
let wallets = 0;

beforeAll(async () => {
  clock = manualClock(START + 3_600_000);
  ledger = await openLedgerOfInserted({ db: database.db, clock, batchMax: 2 });
});
afterAll(async () => {
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
});

/** One step; reports are named by their place. */
const step = fc.oneof(
  fc.record({ do: fc.constant('report' as const), at: fc.integer({ min: -2, max: 2 }) }),
  fc.record({ do: fc.constant('flip' as const), which: fc.nat(5) }),
  fc.record({ do: fc.constant('post' as const) }),
);

/** One wallet with what was reported of it. */
class History {
  readonly wallet = addr(1_000 + wallets++);
  readonly account = accountOfWallet(this.wallet);
  readonly reports: { id: string; at: number; amount: bigint; executed: boolean }[] = [];

  async take(one: { do: string; at?: number; which?: number }): Promise<void> {
    if (one.do === 'post') await ledger.runOnce(clock.now());
    else if (one.do === 'report') await this.report(OBSERVED_AT + (one.at ?? 0));
    else await this.flip(one.which ?? 0);
  }

  private async report(at: number): Promise<void> {
    const amount = 1n << BigInt(this.reports.length);
    const id = `op_${this.wallet}_${this.reports.length}`;
    const reported = { source: 'report', state: 'executed', effectiveBasis: 'reported' } as const;
    await putOperations(database.owner, [
      give(id, { ...reported, effectiveAt: at, toAddr: this.wallet, amount }),
    ]);
    this.reports.push({ id, at, amount, executed: true });
  }

  private async flip(which: number): Promise<void> {
    const report = this.reports[which];
    if (!report) return;
    report.executed = !report.executed;
    await setState(database.owner, [report.id], report.executed ? 'executed' : 'not_executed');
  }

  /** The opening that follows from the observation and from what is posted now. */
  async judge(): Promise<{ amount: bigint; version: bigint }> {
    const held = (await balancesOf(database.db, [this.account])).get(this.account);
    const posted = await database.owner.sql<{ sum: bigint | null }[]>`
      select sum(amount) from tallyhook.operations o where exists (
          select from tallyhook.transactions t where t.operation_id = o.id
          having max(t.posting) % 2 = 1)
        and effective_at >= ${new Date(OBSERVED_AT).toISOString()} and to_addr = ${this.wallet}`;
    const base = (held?.balance ?? 0n) - (posted[0]?.sum ?? 0n);
    return { amount: OBSERVED - base, version: held?.version ?? 0n };
  }

  /** With what took effect at `at`. */
  async balanceAsOf(at: number): Promise<bigint | null | undefined> {
    const rows = await database.db.sql<{ balance: bigint | null }[]>`
      select balance from finance_v1.balances_as_of(${isoText(OBSERVED_AT + at + 1)}, null)
      where account = ${this.account}`;
    return rows[0]?.balance;
  }

  /** What the wallet held, and whether that is known: since the first executed report at least. */
  heldAsOf(at: number): { balance: bigint; known: boolean } {
    const executed = this.reports
      .filter((one) => one.executed)
      .map((one) => ({ at: one.at - OBSERVED_AT, amount: one.amount }));
    const between = (from: number, to: number) =>
      executed.reduce((sum, one) => (one.at > from && one.at <= to ? sum + one.amount : sum), 0n);
    const balance = at < 0 ? OBSERVED - between(at, -1) : OBSERVED + between(-1, at);
    return { balance, known: at >= Math.min(0, ...executed.map((one) => one.at)) };
  }

  async open({ amount, version }: { amount: bigint; version: bigint }): Promise<void> {
    const request = {
      id: openingId(this.wallet),
      kind: 'opening' as const,
      account: this.account,
      counter: 'opening',
      amount,
      effectiveAt: OBSERVED_AT,
      effectiveBasis: 'observed',
      requestedBy: 'reconciler',
      seen: { at: OBSERVED_AT, version },
    };
    await database.db.begin((tx) => requestPosting(tx, request, START));
  }
}

const steps = fc.array(step, { maxLength: 6 });

it('In any order the wallet holds what was observed and what took effect later', async () => {
  await fc.assert(
    fc.asyncProperty(steps, steps, steps, async (before, between, after) => {
      const history = new History();
      for (const one of before) await history.take(one);
      const judged = await history.judge();
      for (const one of between) await history.take(one);
      await history.open(judged);
      for (const one of after) await history.take(one);
      await runDry(ledger, clock);
      const late = history.reports.filter(({ at, executed }) => executed && at >= OBSERVED_AT);
      const expected = late.reduce((sum, { amount }) => sum + amount, OBSERVED);
      const found = (await balancesOf(database.db, [history.account])).get(history.account);
      expect(found?.balance).toBe(expected);
      for (let at = -3; at <= 3; at++) {
        const { balance, known } = history.heldAsOf(at);
        const found = await history.balanceAsOf(at);
        expect([at, found ?? balance]).toEqual([at, balance]);
        if (known) expect([at, found]).toEqual([at, balance]);
      }
    }),
    { numRuns: 60 },
  );
});
