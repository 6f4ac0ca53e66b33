/** The views of finance_v1 agree with the ledger and with each other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FINANCE } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { listTransactions, readChainHead, trialBalancePage } from '../../src/ledger/ledger.ts';
import { STALE_AFTER_SETTING } from '../../src/reports/reports.ts';
import { addr, balancedWorld, DAY, HOUR, HUGE, START, type World } from '../reports/world.ts';

let world: World;
let finance: Db;
beforeAll(async () => {
  world = await balancedWorld();
  finance = connect({ url: world.url, role: FINANCE, max: 2 });
});
afterAll(async () => {
  await finance.end();
  await world.drop();
});

type Row = Record<string, unknown>;
const read = (text: string) =>
  finance.sql.unsafe(`select * from finance_v1.${text}`) as Promise<Row[]>;

describe('Balances', () => {
  it('The trial balance equals that of the ledger for any two times', async () => {
    const times = [undefined, START - 2 * DAY, START, START + HOUR, START + DAY];
    for (const asOf of times) {
      for (const knownAt of times) {
        const text = (at: number | undefined) => (at === undefined ? 'null' : `'${isoText(at)}'`);
        const rows = await read(`trial_balance(${text(asOf)}, ${text(knownAt)})`);
        const own = await trialBalancePage(world.db, { asOf, knownAt }, { limit: 100 });
        expect(rows).toEqual(own.lines);
      }
    }
  });

  it('Positive balances stand under debit, and both sides are equal', async () => {
    const rows = await read('trial_balance()');
    const own = rows.find(({ account }) => account === `wallet:${addr(1)}`);
    expect(own).toMatchObject({ debit: 150n, credit: 0n });
    const sum = (side: string) =>
      rows.reduce((total, row) => total + BigInt(String(row[side])), 0n);
    expect(sum('debit')).toBe(sum('credit'));
  });

  it('The journal sums to the balances, which equal the last balance_after', async () => {
    const balances = await read('balances');
    const journal = await read('journal');
    expect(balances).toHaveLength(6);
    for (const { account, balance, lastSeq } of balances) {
      const own = journal.filter((row) => row.account === account);
      expect(own.reduce((total, row) => total + BigInt(String(row.amount)), 0n)).toBe(balance);
      const last = own.find(({ seq }) => seq === lastSeq);
      expect(last ? last.balanceAfter : 0n).toBe(balance);
    }
    const transactions = await listTransactions(world.db, { limit: 100 });
    expect(journal).toHaveLength(transactions.flatMap(({ entries }) => entries).length);
    expect(journal).toContainEqual(
      expect.objectContaining({ kind: 'give', txLogNo: HUGE, reasonType: 'welcome' }),
    );
  });
});

it('A statement is ordered by effective time', async () => {
  const rows = await read(
    `wallet_statement('${addr(2).toUpperCase()}', '${isoText(START)}', null)`,
  );
  expect(
    rows.map(({ kind, amount, balanceAfter, counterparty }) => [
      kind,
      amount,
      balanceAfter,
      counterparty,
    ]),
  ).toEqual([
    ['receive_from', -32n, HUGE - 32n, 'collection, fees'],
    ['transfer', -53n, HUGE - 85n, `wallet:${addr(1)}, fees`],
  ]);
});

it('Movements are counted on the local day', async () => {
  const late = isoText(START + 23 * HOUR + 1_800_000);
  const times = { recorded_at: late, answered_at: late, effective_at: late };
  const id = await world.operation({ ...times, reason_type: 'late', to_addr: addr(8), amount: 5 });
  await world.post();
  const daily = async (zone: string) =>
    (
      await finance.sql<Row[]>`
      select day::text, kind, operations, amount, fees
      from finance_v1.movements_daily(null, null, ${zone}) where reason_type = 'late'`
    )[0];
  const row = { kind: 'give', operations: 1n, amount: 5n, fees: 0n };
  expect(await daily('UTC')).toEqual({ day: '2026-01-01', ...row });
  expect(await daily('Europe/Berlin')).toEqual({ day: '2026-01-02', ...row });
  await world.sql(`update tallyhook.operations set state = 'failed' where id = '${id}'`);
  await world.post();
  expect(await daily('UTC')).toMatchObject({ operations: 0n, amount: 0n });
});

it('A position shows unposted, in-flight and unknown amounts and drift', async () => {
  const lost = { answered_at: null, effective_at: null, operation_no: null };
  const pay = { kind: 'transfer', from_addr: addr(1), to_addr: addr(6), ...lost };
  await world.operation({ amount: 10, quarantine_reason: 'kept back' });
  await world.operation({ ...pay, state: 'sending', amount: 20, fee_amount: 1 });
  await world.operation({ ...pay, state: 'unknown', amount: 3 });
  await world.operation({ ...lost, operation_no: 7, state: 'undecided', amount: 4 });
  await world.operation({ state: 'rejected', amount: 1_000 });
  await world.operation({ state: 'queued', amount: 1_000 });
  await world.drift(addr(1), 5n);
  await world.drift(addr(1), -7n);
  const rows = await read('wallet_positions');
  expect(rows.find((row) => row.addr === addr(1))).toEqual({
    addr: addr(1),
    status: 1,
    opened: true,
    ledgerBalance: 150n,
    unposted: 10n,
    inFlight: -21n,
    unknown: 1n,
    bestCase: 164n,
    worstCase: 136n,
    observedBalance: 150n,
    observedAt: START + 12 * HOUR + 1,
    ledgerAtObservation: 150n,
    drift: -2n,
  });
  expect(rows.find((row) => row.addr === addr(6))).toMatchObject({
    opened: false,
    ledgerBalance: 0n,
    inFlight: 20n,
    unknown: 3n,
    observedBalance: null,
  });
});

it('Only executed operations without a number are listed', async () => {
  const id = await world.operation({ state: 'executed', to_addr: addr(6) });
  const rows = await read('operations_without_tx_number');
  const mine = rows.map(({ operationId }) => operationId);
  expect(mine).toContain(id);
  const all = await read('operations');
  const numbered = all.filter((row) => row.txLogNo !== null || row.outcome !== 'executed');
  expect(numbered.filter(({ operationId }) => mine.includes(operationId))).toEqual([]);
});

it.each([
  [1, '<15 min', 1],
  [16, '<2 h', 2],
  [121, '<24 h', 3],
  [24 * 60 + 1, '1–3 d', 4],
  [3 * 24 * 60 + 1, '3–30 d', 5],
  [31 * 24 * 60, '>30 d', 6],
])(
  'A drift of %i minutes is in bucket %s, the %i. of six',
  async (minutes, bucket, bucketOrder) => {
    const now = await world.owner.sql<{ now: number }[]>`select now() as now`;
    const since = isoText((now[0]?.now ?? 0) - minutes * 60_000);
    const id = await world.drift(addr(9), 1n, { suspected_at: since });
    const closed = await world.drift(addr(9), 1n, { suspected_at: since });
    await world.sql(
      `update tallyhook.drifts set state = 'returned', closed_at = '${since}', closed_by = '{}'
     where id = '${closed}'`,
    );
    const ageing = await read('drifts_ageing');
    expect(ageing.find(({ driftId }) => driftId === id)).toMatchObject({
      ...{ bucket, bucketOrder, closedAt: null },
    });
    expect(ageing.some(({ driftId }) => driftId === closed)).toBe(false);
    const all = await read('drifts');
    expect(all.find(({ driftId }) => driftId === closed)).toMatchObject({ bucket: '<15 min' });
  },
);

it('Coverage counts every wallet in scope once', async () => {
  const [row] = await read('coverage');
  // Wallets 1 and 2 were observed long ago; wallet 8 has entries and no observation.
  expect(row).toMatchObject({ inScope: 3n, checked: 0n, stale: 3n });
  const now = 'observed_at = now()';
  await world.sql(`update tallyhook.wallets set ${now} where addr = '${addr(1)}'`);
  expect((await read('coverage'))[0]).toMatchObject({ inScope: 3n, checked: 1n, stale: 2n });
  const never = { name: STALE_AFTER_SETTING, value: '1e12', set_at: isoText(START) };
  await world.insert('installation', never);
  expect((await read('coverage'))[0]).toMatchObject({ inScope: 3n, checked: 2n, stale: 1n });
});

it('Reports are listed with their verdict', async () => {
  const { id, breaks } = await world.report();
  const rows = await read('reports');
  const chainHead = await readChainHead(world.db);
  expect(chainHead).toMatch(/^[0-9a-f]{64}:\d+$/);
  expect(rows).toEqual([
    expect.objectContaining({ reportId: id, verdict: 'breaks', breaks, chainHead }),
  ]);
});
