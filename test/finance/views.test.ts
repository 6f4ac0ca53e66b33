/** The views of finance_v1 agree with the ledger and with each other. */
import { beforeAll, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { listMovements, listTransactions, trialBalancePage } from '../../src/ledger/ledger.ts';
import { LEDGER_SETTING, ledgerSetting, STALE_AFTER_SETTING } from '../../src/reports/reports.ts';
import { readChainHead } from '../harness/books.ts';
import { addr, balancedWorld, DAY, HOUR, HUGE, START } from '../reports/world.ts';
import { useFinance } from './rig.ts';

const { world, finance, read } = await useFinance(balancedWorld());

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
      await finance.sql<Record<string, unknown>[]>`
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

describe('Bounds of movements are of the zone that is named, not of the one of the session', () => {
  beforeAll(async () => {
    // Half an hour after midnight in Berlin.
    const at = isoText(START + 23 * HOUR + 1_800_000);
    const times = { recorded_at: at, answered_at: at, effective_at: at };
    await world.operation({ ...times, reason_type: 'edge', to_addr: addr(8), amount: 5 });
    await world.post();
  });

  it.each([
    ['its day', `'2026-01-02', '2026-01-03'`, 1],
    ['the day before', `'2026-01-01', '2026-01-02'`, 0],
    ['its date', `date '2026-01-02', date '2026-01-03'`, 1],
    ['the date before', `date '2026-01-01', date '2026-01-02'`, 0],
    ['local times around it', `'2026-01-02 00:30', '2026-01-02 00:31'`, 1],
    ['a local time after it', `'2026-01-02 00:31', null`, 0],
    ['instants around it', `'2026-01-01T23:30:00Z', '2026-01-01T23:30:01Z'`, 1],
    ['such instants with a type', `timestamptz '2026-01-01 23:30Z', '2026-01-01 23:31Z'`, 1],
    ['all', 'null, null', 1],
  ])('%s: %s', async (_title, bounds, count) => {
    for (const zone of ['Pacific/Kiritimati', 'America/Anchorage', 'Europe/Berlin'])
      await finance.begin(async (tx) => {
        await tx.sql.unsafe(`set local timezone = '${zone}'`);
        const rows = await tx.sql.unsafe<{ day: string }[]>(`select day::text
          from finance_v1.movements_daily(${bounds}, 'Europe/Berlin') where reason_type = 'edge'`);
        expect([zone, rows]).toEqual([zone, count === 1 ? [{ day: '2026-01-02' }] : []]);
      });
  });
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

it('A number that becomes known after the posting appears in every view', async () => {
  const late = { state: 'executed', effective_basis: 'observed', to_addr: addr(4), amount: 2 };
  const id = await world.operation(late);
  const token = { contract_id: 3, token_id: 1, state: 'settled', operation_no: null };
  const minted = await world.operation({ ...token, kind: 'mint', amount: null, to_addr: addr(4) });
  await world.post();
  const noNumber = await read(`journal where operation_id = '${id}' and tx_log_no is null`);
  expect(noNumber).toHaveLength(2);
  await world.sql(
    `update tallyhook.operations set tx_app_no = 1, tx_log_no = 77 where id = '${id}'`,
  );
  await world.sql(`update tallyhook.operations set tx_hash = '0xabc' where id = '${minted}'`);
  const numbered = { txAppNo: 1n, txLogNo: 77n };
  const journal = await read(`journal where operation_id = '${id}'`);
  expect(journal).toEqual([expect.objectContaining(numbered), expect.objectContaining(numbered)]);
  expect(await read(`wallet_statement('${addr(4)}', null, null)`)).toMatchObject([
    { txLogNo: 77n },
  ]);
  expect(await read('nft_movements')).toMatchObject([{ kind: 'mint', txHash: '0xabc' }]);
  const transactions = await listTransactions(world.db, { operationId: id, limit: 1 });
  expect(transactions).toMatchObject([numbered]);
  const movements = await listMovements(world.db, { contractId: 3n, tokenId: 1n }, { limit: 1 });
  expect(movements).toMatchObject([{ txHash: '0xabc' }]);
});

it('answered_at is empty for a write whose answer was lost, though its outcome is known', async () => {
  const lost = { state: 'executed', effective_basis: 'observed', to_addr: addr(4) };
  const id = await world.operation(lost);
  const answered = await world.operation({ answer_status: 200, to_addr: addr(4) });
  const at = async (operation: string) =>
    (await read(`operations where operation_id = '${operation}'`))[0]?.answeredAt;
  expect(await at(id)).toBeNull();
  expect(await at(answered)).toBe(START + HOUR);
});

it('An operator is listed with the address that is set, and with the account before that', async () => {
  expect(await read('operators')).toEqual([
    { operatorNo: 7n, addr: null, account: 'operator:7', balance: expect.any(BigInt) },
  ]);
  const set = ledgerSetting({ feeMode: 'on_top', operators: new Map([['7', addr(1)]]) });
  await world.sql(`update tallyhook.installation set value = '${set}'
    where name = '${LEDGER_SETTING}'`);
  expect(await read('operators order by addr')).toMatchObject([
    { operatorNo: 7n, addr: addr(1), account: `wallet:${addr(1)}`, balance: 150n },
    { operatorNo: 7n, addr: null, account: 'operator:7' },
  ]);
  const accounts = await read('accounts where operator_no = 7 order by account');
  expect(accounts).toMatchObject([
    { account: 'operator:7', addr: null },
    { account: `wallet:${addr(1)}`, addr: addr(1) },
  ]);
});

it('An operator is listed with the wallet that two owners mapped, unless the setting names one', async () => {
  const map = async (no: number, wallet: string, approvedBy?: string) => {
    const [subject, at] = [`operator:${no}`, isoText(START)];
    const proposed = { subject, n: 1, proposed_by: 'ann' };
    const decision = { ...proposed, decision: wallet, reason: 'r', approvals_needed: 1 };
    await world.insert('decisions', { ...decision, proposed_key: 'key_1', proposed_at: at });
    await world.insert('operator_wallets', { account: subject, n: 1, addr: wallet });
    if (approvedBy)
      await world.insert('approvals', { ...proposed, owner: approvedBy, key_id: 'key_2', at });
  };
  await map(7, addr(11), 'bob');
  await map(8, addr(12), 'bob');
  await map(9, addr(13));
  expect(await read('operators where addr is not null order by operator_no')).toMatchObject([
    { operatorNo: 7n, addr: addr(1) },
    { operatorNo: 8n, addr: addr(12), account: `wallet:${addr(12)}`, balance: 0n },
  ]);
});

it('A write in doubt is listed with since when, its owner, its evidence and a proposal', async () => {
  const lost = {
    answered_at: null,
    effective_at: null,
    owner: 'shop',
    amount: 6,
    to_addr: addr(5),
  };
  const id = await world.operation({ ...lost, state: 'unknown' });
  const people = await world.operation({ ...lost, state: 'undecided', evidence: { tries: 2 } });
  for (const operation of [id, people]) {
    const transition = { operation_id: operation, from_state: 'sending', to_state: 'unknown' };
    const at = isoText(START + 2 * HOUR);
    await world.insert('transitions', { ...transition, at, cause: 'reset' });
    await world.insert('transitions', { ...transition, to_state: 'undecided', at, cause: 'late' });
  }
  const seen = isoText(START + 3 * HOUR);
  await world.insert('candidates', {
    operation_id: id,
    outcome: 'executed',
    basis: 'two_sided',
    evidence: { sum: 6 },
    seen_at: seen,
    observation_started_at: seen,
  });
  await world.insert('decisions', {
    subject: people,
    n: 1,
    decision: 'executed',
    reason: 'seen',
    approvals_needed: 1,
    proposed_by: 'ann',
    proposed_key: 'key_1',
    proposed_at: seen,
  });
  const rows = await read(`in_doubt where owner = 'shop' order by operation_id`);
  const both = { kind: 'give', amount: 6n, since: START + 2 * HOUR, cause: 'reset' };
  expect(rows).toMatchObject([
    { ...both, operationId: id, state: 'unknown', proposedBy: null },
    { ...both, operationId: people, state: 'undecided', proposal: 'executed', proposedBy: 'ann' },
  ]);
  const evidence = rows.map((row) => row.evidence);
  expect(evidence).toMatchObject([
    { outcome: 'executed', basis: 'two_sided', evidence: { sum: 6 } },
    { tries: 2 },
  ]);
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
      bucket,
      bucketOrder,
      closedAt: null,
    });
    expect(ageing.some(({ driftId }) => driftId === closed)).toBe(false);
    const all = await read('drifts');
    expect(all.find(({ driftId }) => driftId === closed)).toMatchObject({ bucket: '<15 min' });
  },
);

it('Coverage counts every wallet in scope once', async () => {
  const [row] = await read('coverage');
  // Wallets 1 and 2 were observed long ago; wallets 4 and 8 have entries and no observation.
  expect(row).toMatchObject({ inScope: 4n, checked: 0n, stale: 4n });
  const now = 'observed_at = now()';
  await world.sql(`update tallyhook.wallets set ${now} where addr = '${addr(1)}'`);
  expect((await read('coverage'))[0]).toMatchObject({ inScope: 4n, checked: 1n, stale: 3n });
  const never = { name: STALE_AFTER_SETTING, value: '1e12', set_at: isoText(START) };
  await world.insert('installation', never);
  expect((await read('coverage'))[0]).toMatchObject({ inScope: 4n, checked: 2n, stale: 2n });
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

it('A statement says of each line what it belongs to, and what of it is the fee, also of a reversal', async () => {
  const write = { kind: 'transfer', operation_no: null, reference: 'order-17', amount: 20 };
  const parties = { from_addr: addr(31), to_addr: addr(32), fee_amount: 2 };
  const id = await world.operation({ ...write, ...parties, effective_at: isoText(START + HOUR) });
  await world.post();
  await world.sql(`update tallyhook.operations set state = 'not_executed' where id = '${id}'`);
  await world.post();
  const statement = async (n: number) => {
    const rows = await read(`wallet_statement('${addr(n)}', null, null)`);
    const known = rows.filter(({ operationId, reference }) => {
      return operationId === id && reference === 'order-17';
    });
    return known.map(({ kind, amount, fee }) => [kind, amount, fee]);
  };
  expect(await statement(31)).toEqual([
    ['transfer', -22n, 2n],
    ['reversal', 22n, -2n],
  ]);
  expect(await statement(32)).toEqual([
    ['transfer', 20n, 0n],
    ['reversal', -20n, 0n],
  ]);
});
