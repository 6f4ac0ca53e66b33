/**
 * An operation that took effect before the opening of its wallet is posted together with an equal
 * correction of the opening, so that the wallet's balance stays. The order of postings does not
 * matter: see opening.property.test.ts.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { listIncludedInOpenings, openingId } from '../../src/ledger/ledger.ts';
import { accountOfWallet, type Operation } from '../../src/operations/operations.ts';
import { addr, give, operation, PLAIN, START, useLedger } from './fixture.ts';

const [A, B] = [addr(1), addr(2)];
const HOUR = 3_600_000;
const rig = useLedger({ startAt: START + HOUR });
/** The start of the observation that the opening rests on. */
const OBSERVED = START;

afterEach(async () => {
  expect(await rig.quarantined()).toEqual({});
});

const open = (wallet: string, amount: bigint) =>
  rig.request({
    id: openingId(wallet),
    kind: 'opening',
    account: accountOfWallet(wallet),
    counter: 'opening',
    amount,
    effectiveAt: OBSERVED,
    effectiveBasis: 'observed',
    requestedBy: 'reconciler',
    seen: { at: OBSERVED, version: 0n },
  });
const report = (id: string, occurredAt: number, more: Partial<Operation> = {}) => {
  const reported = { source: 'report', state: 'executed', effectiveBasis: 'reported' } as const;
  return give(id, { ...reported, effectiveAt: occurredAt, ...more });
};
/** Balances by account with what took effect at `at`; null where unknown. */
const balancesAsOf = async (at: number, knownAt?: number) => {
  const rows = await rig.database.db.sql<{ account: string; balance: bigint | null }[]>`
    select account, balance from finance_v1.balances_as_of(${isoText(at + 1)},
      ${knownAt === undefined ? null : isoText(knownAt)}::timestamptz)`;
  return new Map(rows.map(({ account, balance }) => [account, balance]));
};
const trialBalanceOff = async (at: number) => {
  const rows = await rig.database.db.sql<{ off: bigint }[]>`
    select sum(debit - credit) as off from finance_v1.trial_balance(${isoText(at + 1)}, null)`;
  return rows[0]?.off;
};
const kinds = async () => {
  const rows = await rig.database.owner.sql<{ kind: string }[]>`
    select kind from tallyhook.transactions order by id`;
  return rows.map(({ kind }) => kind);
};

describe('A reported operation from before the opening', () => {
  it('A report from before the opening is posted with a correction, which keeps the balance', async () => {
    await open(A, 100n);
    await rig.post();
    await rig.put(report('op_1', OBSERVED - HOUR));
    await rig.post();
    expect(await rig.balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '-10',
      opening: '-90',
    });
    expect(await kinds()).toEqual(['opening', 'opening', 'opening', 'give', 'opening']);
  });

  it('A report that turns out not executed is reversed together with its correction', async () => {
    await open(A, 100n);
    await rig.put(report('op_1', OBSERVED - HOUR));
    await rig.post();
    await rig.setState('not_executed', 'op_1');
    await rig.post();
    expect(await rig.balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '0',
      opening: '-100',
    });
  });

  it('Only the wallet that was opened after a transfer is corrected', async () => {
    await open(A, 100n);
    await rig.put(
      report('op_1', OBSERVED - HOUR, { kind: 'transfer', fromAddr: A, toAddr: B, feeAmount: 1n }),
    );
    await rig.post();
    expect(await rig.balances(`wallet:${A}`, `wallet:${B}`, 'fees')).toEqual({
      [`wallet:${A}`]: '100',
      [`wallet:${B}`]: '10',
      fees: '1',
    });
  });

  it('Of a transfer from a wallet to itself only the fee is corrected', async () => {
    await open(A, 100n);
    await rig.put(
      report('op_1', OBSERVED - HOUR, { kind: 'transfer', fromAddr: A, toAddr: A, feeAmount: 1n }),
    );
    await rig.post();
    expect(await rig.balances(`wallet:${A}`, 'fees')).toEqual({
      [`wallet:${A}`]: '100',
      fees: '1',
    });
  });

  it('The opening moves before the report, so that balances as of any time are right', async () => {
    await open(A, 100n);
    await rig.post();
    await rig.put(report('op_1', OBSERVED - HOUR), report('op_2', OBSERVED - 2 * HOUR));
    await rig.post();
    const asOf = async (at: number) => (await balancesAsOf(at)).get(`wallet:${A}`);
    expect(await asOf(OBSERVED)).toBe(100n);
    expect(await asOf(OBSERVED - 1)).toBe(100n);
    expect(await asOf(OBSERVED - HOUR)).toBe(100n);
    expect(await asOf(OBSERVED - HOUR - 1)).toBe(90n);
    expect(await asOf(OBSERVED - 2 * HOUR - 1)).toBe(80n);
    expect(await asOf(OBSERVED - 2 * HOUR - 2)).toBeNull();
    // What was known before the reports is unchanged.
    const [first] = await rig.database.owner.sql<{ at: number }[]>`
      select min(recorded_at) as at from tallyhook.batches`;
    const before = await balancesAsOf(OBSERVED - 1, first?.at);
    expect(before.get(`wallet:${A}`)).toBeNull();
  });

  it('2,000 old reports leave the balance as of yesterday as it was observed', async () => {
    await open(A, 1_000n);
    await rig.post();
    const ids = Array.from({ length: 2_000 }, (_, n) => n);
    await rig.put(
      ...ids.map((n) => report(`op_${n}`, OBSERVED - 48 * HOUR - n * 1_000, { amount: 1_000n })),
    );
    await rig.post();
    for (const at of [OBSERVED, OBSERVED - 24 * HOUR, OBSERVED - 48 * HOUR])
      expect((await balancesAsOf(at)).get(`wallet:${A}`)).toBe(1_000n);
    expect((await balancesAsOf(OBSERVED - 72 * HOUR)).get(`wallet:${A}`)).toBeNull();
    expect(await trialBalanceOff(OBSERVED - 24 * HOUR)).toBe(0n);
  });

  it('An entry posted before the opening also moves it, by any amount', async () => {
    await rig.put(report('op_1', OBSERVED - HOUR));
    await rig.post();
    await open(A, -10n);
    await rig.post();
    expect((await balancesAsOf(OBSERVED - HOUR - 1)).get(`wallet:${A}`)).toBe(-20n);
    expect((await balancesAsOf(OBSERVED)).get(`wallet:${A}`)).toBe(-10n);
  });
});

describe('The balance of a wallet', () => {
  it('Before the first evidence it is unknown, neither zero nor absent', async () => {
    await open(A, 100n);
    await open(B, 0n);
    await rig.put(give('op_1', { toAddr: addr(3), effectiveAt: OBSERVED + 1 }));
    await rig.post();
    expect([...(await balancesAsOf(OBSERVED - 1))]).toEqual([
      ['opening', 0n],
      ['operator:7', 0n],
      ...[`wallet:${A}`, `wallet:${B}`, `wallet:${addr(3)}`].map((name) => [name, null]),
    ]);
    const now = await balancesAsOf(OBSERVED + HOUR);
    expect([now.get(`wallet:${A}`), now.get(`wallet:${B}`)]).toEqual([100n, 0n]);
    expect(now.get(`wallet:${addr(3)}`)).toBeNull();
  });
});

describe('A write of ours from before the opening', () => {
  it('A write that the service accepted before the observation needs no correction', async () => {
    await rig.put(
      give('op_1', { sentAt: OBSERVED - 2, answeredAt: OBSERVED - 1, effectiveAt: OBSERVED - 1 }),
    );
    await open(A, 90n);
    await rig.post();
    expect(await rig.balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '100' });
    expect((await kinds()).sort()).toEqual(['give', 'opening']);
  });

  it('The reversal of such a write after the observation is corrected', async () => {
    await rig.put(give('op_1', { sentAt: OBSERVED - 2, effectiveAt: OBSERVED - 1 }));
    await open(A, 90n);
    await rig.post();
    await rig.setState('not_executed', 'op_1');
    await rig.post();
    expect(await rig.balances(`wallet:${A}`, 'operator:7', 'opening')).toEqual({
      [`wallet:${A}`]: '100',
      'operator:7': '0',
      opening: '-100',
    });
  });
});

describe('For a report', () => {
  it('An opening includes writes whose wallets were all opened later or will be opened', async () => {
    await open(A, 100n);
    const pay = (id: string, at: number, to: string) =>
      operation(report(id, at, { kind: 'transfer', fromAddr: A, toAddr: to }));
    const writes = [
      pay('old', OBSERVED - 1, B),
      pay('new', OBSERVED, B),
      pay('late', OBSERVED - 1, A),
    ];
    const recent = OBSERVED - HOUR;
    expect(await listIncludedInOpenings(rig.database.db, writes, PLAIN, OBSERVED + HOUR)).toEqual(
      new Set(['old', 'late']),
    );
    expect(await listIncludedInOpenings(rig.database.db, writes, PLAIN, recent)).toEqual(
      new Set(['late']),
    );
  });
});
