/** The probable cause of a drift, the proposal that fits it, and drifts that belong together. */
import { describe, expect, it } from 'vitest';
import { type Facts, probableCause } from '../../../src/reconciler/drifts/cause.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const NOTHING: Facts = {
  driftId: 'drf_1',
  amount: -3n,
  lost: [],
  booked: undefined,
  otherFeeRule: [],
  sinceOpening: false,
};
const book = { drift_id: 'drf_1', proposal: 'book', operation_id: null };
const booked = { driftId: 'drf_0', operationId: 'op_9' };

describe('A cause', () => {
  it.each<[string, Partial<Facts>, string, object | null]>([
    ['nothing else is known', {}, 'made_elsewhere', book],
    ['nothing agreed since the opening', { sinceOpening: true }, 'opening', book],
    ['all fees together differ', { otherFeeRule: [-1n, -2n] }, 'fee_rule', book],
    ['one fee differs', { otherFeeRule: [-1n, -3n] }, 'fee_rule', book],
    ['fees do not fit', { otherFeeRule: [-1n, -1n] }, 'made_elsewhere', book],
    [
      'one operation would explain it',
      { lost: ['op_1'], otherFeeRule: [-3n] },
      'lost_operation',
      { drift_id: 'drf_1', proposal: 'link', operation_id: 'op_1' },
    ],
    ['two operations would', { lost: ['op_1', 'op_2'] }, 'lost_operation', book],
    [
      'it takes back a booking whose operation is known now',
      { booked, lost: ['op_1'] },
      'lost_operation',
      { drift_id: 'drf_0', proposal: 'link', operation_id: 'op_9' },
    ],
  ])('If %s, the cause and its proposal follow', (_, known, cause, prepared) => {
    expect(probableCause({ ...NOTHING, ...known })).toEqual({ cause, prepared });
  });
});

describe('A drift', () => {
  it('Directly after the opening its cause is the opening, later a change made elsewhere', async () => {
    const addr = await rig.opened(100n);
    await rig.observeSeries(addr, 90n, 90n, 90n, 95n, 95n);
    const found = (await rig.drifts(addr)).map(({ amount, cause }) => [amount, cause]);
    expect(found).toEqual([
      [-10n, 'opening'],
      [5n, 'made_elsewhere'],
    ]);
  });

  it('By the fee of a transfer, under the other reading of fees, its cause is the fee rule', async () => {
    const [a, b] = [await rig.opened(1_000n), await rig.opened(1_000n)];
    for (const addr of [a, b]) await rig.observe(addr, 1_000n);
    await rig.accept(await rig.transfer(a, b, 100n, 3n));
    await rig.observeAll([a, 900n], [b, 1_097n], [a, 900n], [b, 1_097n]);
    expect(await rig.drifts(a)).toMatchObject([{ amount: 3n, cause: 'fee_rule' }]);
    expect(await rig.drifts(b)).toMatchObject([{ amount: -3n, cause: 'fee_rule' }]);
    expect(await rig.drifts(b)).toMatchObject([{ counterpart: null }]);
  });

  it('While only its bounds are known, no proposal is prepared', async () => {
    const addr = await rig.opened(100n);
    await rig.lose(await rig.give(addr, 30n));
    await rig.observeSeries(addr, 103n, 103n);
    expect(await rig.drifts(addr)).toMatchObject([{ amount: null, prepared: null }]);
  });
});

describe('Two drifts of opposite amounts', () => {
  /** Two wallets that agreed, then changed by these amounts, seen at the same time. */
  async function changed(out: bigint, into: bigint) {
    const wallets = [await rig.opened(1_000n), await rig.opened(1_000n)] as const;
    for (const addr of wallets) await rig.observe(addr, 1_000n);
    const [a, b] = wallets;
    for (let i = 0; i < 2; i++) await rig.observeAll([a, 1_000n - out], [b, 1_000n + into]);
    return [(await rig.drifts(a))[0], (await rig.drifts(b))[0]] as const;
  }

  it('They are one transfer, also if the payer pays the usual fee as well', async () => {
    await rig.accept(await rig.transfer(await rig.opened(9n), await rig.opened(9n), 1n, 4n));
    for (const [out, into] of [
      [51n, 51n],
      [66n, 62n],
    ] as const) {
      const [a, b] = await changed(out, into);
      expect([a?.counterpart, b?.counterpart]).toEqual([b?.id, a?.id]);
    }
  });

  it('They are none if they differ, or if another drift could be the other side', async () => {
    const [a, b] = await changed(71n, 70n);
    expect([a?.counterpart, b?.counterpart]).toEqual([null, null]);
    const wallets = [await rig.opened(1_000n), await rig.opened(1_000n), await rig.opened(1_000n)];
    for (const addr of wallets) await rig.observe(addr, 1_000n);
    const [x = '', y = '', z = ''] = wallets;
    for (let i = 0; i < 2; i++) await rig.observeAll([x, 1_085n], [y, 1_085n], [z, 915n]);
    for (const addr of wallets)
      expect(await rig.drifts(addr)).toMatchObject([{ counterpart: null }]);
  });

  it('They are none if the windows of the changes do not meet', async () => {
    const [a, b] = [await rig.opened(1_000n), await rig.opened(1_000n)];
    for (const addr of [a, b]) await rig.observe(addr, 1_000n);
    await rig.observeSeries(a, 907n, 907n);
    await rig.observeSeries(b, 1_000n, 1_000n, 1_093n, 1_093n);
    for (const addr of [a, b])
      expect(await rig.drifts(addr)).toMatchObject([{ counterpart: null }]);
  });
});
