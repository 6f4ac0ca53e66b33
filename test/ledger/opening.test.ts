/**
 * An operation that took effect before the opening of its wallet is posted together with an equal
 * correction of the opening, so that the wallet's balance stays. The order of postings does not
 * matter: see opening.property.test.ts.
 */
import { afterEach, describe, expect, it } from 'vitest';
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
    ...{ id: openingId(wallet), kind: 'opening', account: accountOfWallet(wallet) },
    ...{ counter: 'opening', amount, effectiveAt: OBSERVED, effectiveBasis: 'observed' },
    ...{ requestedBy: 'reconciler', seen: { at: OBSERVED, version: 0n } },
  });
const report = (id: string, occurredAt: number, more: Partial<Operation> = {}) => {
  const reported = { source: 'report', state: 'executed', effectiveBasis: 'reported' } as const;
  return give(id, { ...reported, effectiveAt: occurredAt, ...more });
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
    expect(await kinds()).toEqual(['opening', 'give', 'opening']);
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

  it('A balance as of before the opening includes the report', async () => {
    await open(A, 100n);
    await rig.put(report('op_1', OBSERVED - HOUR));
    await rig.post();
    const rows = await rig.database.db.sql<{ balance: bigint }[]>`
      select balance from finance_v1.balances_as_of(${new Date(OBSERVED - 1).toISOString()}, null)
      where account = ${`wallet:${A}`}`;
    expect(rows).toEqual([{ balance: 10n }]);
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
