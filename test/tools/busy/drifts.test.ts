import { describe, expect, it } from 'vitest';
import { driftOf, matchDrifts, openedIn, shownBy } from './drifts.ts';

const SHOP = '0xShop';
const CHANGES = [
  { addr: SHOP, amount: -50_000n, at: 1_000 },
  { addr: SHOP, amount: 65_000n, at: 9_000 },
  { addr: '0xOther', amount: -50_000n, at: 1_000 },
];

/** An event about the shop's wallet, in another spelling. */
function opened(at: number, data: Record<string, string | null>) {
  return driftOf({ at, data: { addr: SHOP.toLowerCase(), ...data } });
}

describe('A drift during a load', () => {
  it('is about the outside change of its wallet that equals its amount', () => {
    const { foundAt, falseDrifts } = matchDrifts(
      [opened(4_000, { amount: '-50000' }), opened(12_000, { amount: '65000' })],
      CHANGES,
    );
    expect(foundAt).toEqual([4_000, 12_000, undefined]);
    expect(falseDrifts).toEqual([]);
  });

  it('is about the changes of those that it took the place of as well', () => {
    const data = (id: string, bounds: [string, string]) => ({
      drift_id: id,
      addr: SHOP,
      amount: null,
      amount_min: bounds[0],
      amount_max: bounds[1],
    });
    const events = [
      { type: 'wallet.drift_opened', at: 4_000, data: data('a', ['-51000', '-40000']) },
      {
        type: 'wallet.drift_closed',
        at: 12_000,
        data: { drift_id: 'a', how: 'merged', closed_by: { drift_id: 'b' } },
      },
      { type: 'wallet.drift_opened', at: 12_000, data: { ...data('b', ['15000', '15000']) } },
    ];
    const { foundAt, falseDrifts } = matchDrifts(openedIn(events), CHANGES);
    expect([foundAt, falseDrifts]).toEqual([[4_000, 12_000, undefined], []]);
  });

  it('is about an outside change within its bounds', () => {
    const bounds = { amount: null, amount_min: '-51000', amount_max: '-40000' };
    expect(matchDrifts([opened(4_000, bounds)], CHANGES).foundAt[0]).toBe(4_000);
  });

  it('is about two outside changes when it equals their sum', () => {
    const { foundAt } = matchDrifts([opened(12_000, { amount: '15000' })], CHANGES);
    expect(foundAt).toEqual([12_000, 12_000, undefined]);
  });

  it.each([
    ['its amount is another one', opened(4_000, { amount: '-50001' })],
    ['its bounds leave the change out', opened(4_000, { amount_min: '-49000', amount_max: '-1' })],
    ['the change came later', opened(900, { amount: '-50000' })],
  ])('is false when %s', (_why, drift) => {
    expect(matchDrifts([drift], CHANGES).falseDrifts).toEqual([drift]);
  });

  it('has a wrong amount when a change in its window was not found', () => {
    const window = {
      window_from: new Date(500).toISOString(),
      window_to: new Date(3_000).toISOString(),
    };
    const drift = opened(4_000, { amount: '-50001', ...window });
    const { wrongAmount, falseDrifts } = matchDrifts([drift], CHANGES);
    expect([wrongAmount, falseDrifts]).toEqual([[drift], []]);
  });

  it('shows a further change when its bounds hold both and no longer the first alone', () => {
    const step = (at: number, least: bigint, most: bigint) => ({
      driftId: 'drf_1',
      addr: SHOP,
      at,
      bounds: { least, most },
    });
    const steps = [
      step(4_000, -55_000n, -45_000n),
      step(10_000, -55_000n, 20_000n),
      step(12_000, 9_000n, 19_000n),
    ];
    expect(shownBy(steps, CHANGES)).toEqual([4_000, 12_000, undefined]);
  });

  it('is false when an earlier drift was about the same change', () => {
    const drifts = [opened(4_000, { amount: '-50000' }), opened(5_000, { amount: '-50000' })];
    expect(matchDrifts(drifts, CHANGES).falseDrifts).toEqual([drifts[1]]);
  });
});
