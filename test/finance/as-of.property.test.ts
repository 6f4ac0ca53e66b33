/**
 * One rule for all instants: as of t counts what took effect before t, t excluded. Random writes
 * and openings, many of them exactly at the instants that are asked for, give the same digits in
 * balances_as_of, trial_balance, wallet_statement, movements_daily, the API and the report.
 */
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { trialBalancePage } from '../../src/ledger/ledger.ts';
import { addr, type Columns, DAY, HOUR, START } from '../reports/world.ts';
import { useFinance } from './rig.ts';

const { world, finance } = await useFinance();
beforeAll(async () => {
  // Wallet 1 is known from before all instants, wallet 2 from one of them on, wallet 4 never.
  await world.open(addr(1), 1_000n, START - DAY);
  await world.open(addr(2), 500n, START);
  await world.open(addr(3), 0n, START + HOUR);
  await world.post();
});
const WALLETS = [1, 2, 3, 4].map(addr);
/** Midnights of Seoul and UTC, and the milliseconds around one. */
const INSTANTS = [START - 9 * HOUR, START - 1, START, START + 1, START + HOUR];

const write = fc.record({
  at: fc.constantFrom(...INSTANTS, START - 2 * DAY),
  kind: fc.constantFrom('give', 'receive_from', 'transfer'),
  from: fc.constantFrom(...WALLETS),
  to: fc.constantFrom(...WALLETS),
  amount: fc.integer({ min: 1, max: 99 }),
  fee: fc.integer({ min: 0, max: 3 }),
});

type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

async function put({ at, kind, from, to, amount, fee }: Write): Promise<void> {
  const effective_at = isoText(at);
  const times = { recorded_at: effective_at, sent_at: effective_at, answered_at: effective_at };
  const parties: Columns =
    kind === 'give'
      ? { to_addr: to }
      : { from_addr: from, to_addr: kind === 'transfer' ? to : null, operation_no: null };
  const fees: Columns = kind === 'give' || fee === 0 ? {} : { fee_amount: fee };
  await world.operation({ kind, ...times, effective_at, amount, ...parties, ...fees });
}

type Amounts = Map<string, bigint>;

const sumOf = (values: Iterable<bigint>) => [...values].reduce((sum, value) => sum + value, 0n);

async function balancesAt(t: string): Promise<Map<string, bigint | null>> {
  const rows = await finance.sql<{ account: string; balance: bigint | null }[]>`
    select account, balance from finance_v1.balances_as_of(${t})`;
  return new Map(rows.map(({ account, balance }) => [account, balance]));
}

async function trialAt(t: string): Promise<Amounts> {
  const rows = await finance.sql<{ account: string; debit: bigint; credit: bigint }[]>`
    select account, debit, credit from finance_v1.trial_balance(${t})`;
  const own = await trialBalancePage(world.db, { asOf: Date.parse(t) }, { limit: 500 });
  expect(own.lines).toMatchObject(rows);
  return new Map(rows.map(({ account, debit, credit }) => [account, debit - credit]));
}

async function statementOf(wallet: string, from: string | null, to: string) {
  return finance.sql<{ amount: bigint; balanceAfter: bigint | null }[]>`
    select amount, balance_after from finance_v1.wallet_statement(${wallet}, ${from}, ${to})`;
}

/** Every way to ask for the balances at both ends of [from, to). */
async function agree(from: string, to: string): Promise<void> {
  const [opening, closing] = [await balancesAt(from), await balancesAt(to)];
  const trials = [await trialAt(from), await trialAt(to)] as const;
  for (const [balances, trial] of [[opening, trials[0]] as const, [closing, trials[1]] as const])
    for (const [account, balance] of balances)
      if (balance !== null) expect([account, balance]).toEqual([account, trial.get(account) ?? 0n]);
  for (const wallet of WALLETS) {
    const account = `wallet:${wallet}`;
    const whole = await statementOf(wallet, null, to);
    const end = closing.get(account) ?? null;
    const last = whole.at(-1);
    if (last) expect([account, last.balanceAfter]).toEqual([account, end]);
    const before = opening.get(account) ?? null;
    if (before === null) continue;
    const lines = await statementOf(wallet, from, to);
    expect([account, before + sumOf(lines.map(({ amount }) => amount))]).toEqual([account, end]);
  }
  const { content } = await world.reports.makeReconciliation({
    from: Date.parse(from),
    to: Date.parse(to),
    requestedBy: 'finance',
  });
  const kindOf = (account: string) => account.split(':')[0];
  const ofKind = (trial: Amounts, kind: string) =>
    sumOf([...trial].flatMap(([name, amount]) => (kindOf(name) === kind ? [amount] : [])));
  for (const row of content.roll_forward) {
    expect([row.name, row.opening]).toEqual([row.name, `${ofKind(trials[0], row.name)}`]);
    expect([row.name, row.closing]).toEqual([row.name, `${ofKind(trials[1], row.name)}`]);
  }
  const debit = sumOf([...trials[1].values()].filter((amount) => amount > 0n));
  expect(content.trial_balance).toMatchObject({ debit: `${debit}`, credit: `${debit}` });
  const [moved] = await finance.sql<{ fees: bigint; operations: bigint }[]>`
    select coalesce(sum(fees), 0) as fees, coalesce(sum(operations), 0)::bigint as operations
    from finance_v1.movements_daily(${from}, ${to}, 'Asia/Seoul')`;
  const counted = content.movements.listed.map(({ operations }) => BigInt(operations));
  expect([content.fees, sumOf(counted)]).toEqual([`${moved?.fees}`, moved?.operations]);
  expect(content.breaks.by_kind.filter(({ kind }) => kind.endsWith('_off'))).toEqual([]);
}

it('Balances as of an instant are the same digits in every view, function and report', async () => {
  const ends = fc.uniqueArray(fc.constantFrom(...INSTANTS), { minLength: 2, maxLength: 2 });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 1, maxLength: 5 }), ends, async (writes, two) => {
      for (const one of writes) await put(one);
      await world.post();
      const [from = 0, to = 0] = two.toSorted((a, b) => a - b);
      await agree(isoText(from), isoText(to));
    }),
    { numRuns: 12, seed: 11 },
  );
});

it('A balance is unknown before its first evidence, and at exactly that instant', async () => {
  const address = addr(9);
  await world.open(address, 70n, START + DAY);
  await world.post();
  const at = async (instant: number) =>
    (await balancesAt(isoText(instant))).get(`wallet:${address}`);
  const [row] = await finance.sql<{ first: number }[]>`
    select min(effective_at) as first from finance_v1.journal
    where account = ${`wallet:${address}`}`;
  const first = row?.first ?? 0;
  expect([await at(first - 1), await at(first), await at(first + 1)]).toEqual([null, null, 70n]);
});
