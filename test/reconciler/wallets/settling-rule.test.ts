import { describe, expect, it } from 'vitest';
import { type Doubts, heldBy } from '../../../src/reconciler/wallets/settling-rule.ts';

const executed = (id: string, effect: bigint, at = 100) => ({
  id,
  effect,
  sentAt: at - 10,
  tookEffectAt: at,
});
const drift = (id: string, min: bigint, max = min, windowTo = 200) => ({ id, min, max, windowTo });
const unknown = (id: string, effect: bigint, until = 200) => ({ id, effect, until });

const CASES: [string, Partial<Doubts>, boolean][] = [
  ['nothing', {}, false],
  ['a drift of its opposite effect', { drifts: [drift('d', -7n)] }, true],
  ['a drift of another amount', { drifts: [drift('d', -8n)] }, false],
  ['a drift of its own effect', { drifts: [drift('d', 7n)] }, false],
  ['a drift from before it took effect', { drifts: [drift('d', -7n, -7n, 100)] }, false],
  ['a drift whose bounds contain it', { drifts: [drift('d', -9n, -2n)] }, true],
  ['a drift whose bounds do not contain it', { drifts: [drift('d', -9n, -8n)] }, false],
  ['two drifts that sum to it', { drifts: [drift('d', -4n), drift('e', -3n)] }, true],
  [
    'a drift that holds it and another write',
    { drifts: [drift('d', -16n)], unsettled: [executed('o', 9n)] },
    true,
  ],
  [
    'a drift that holds it and a write from after the drift',
    { drifts: [drift('d', -16n)], unsettled: [executed('o', 9n, 300)] },
    false,
  ],
  ['an unknown write of the same effect', { unknown: [unknown('u', 7n)] }, true],
  ['an unknown write of the opposite effect', { unknown: [unknown('u', -7n)] }, true],
  ['an unknown write of another effect', { unknown: [unknown('u', 5n)] }, false],
  ['an unknown write that ended before it was sent', { unknown: [unknown('u', 7n, 90)] }, false],
  [
    'an unknown write and a drift',
    { unknown: [unknown('u', 5n)], drifts: [drift('d', -2n)] },
    true,
  ],
  ['a small drift beside many writes', { drifts: [drift('d', -30n)], unsettled: nines(20) }, true],
  [
    'a drift larger than all writes',
    { drifts: [drift('d', -50_000n)], unsettled: nines(20) },
    false,
  ],
  [
    'more unknown writes than can be combined',
    { unknown: Array.from({ length: 6 }, (_, n) => unknown(`u${n}`, 1_000n)) },
    true,
  ],
  [
    'five unknown writes, which are combined',
    { unknown: Array.from({ length: 5 }, (_, n) => unknown(`u${n}`, 1_000n)) },
    false,
  ],
  [
    'the later of two drifts and a write from between them',
    {
      drifts: [drift('d', -16n, -16n, 400), drift('e', 1n, 1n, 150)],
      unsettled: [executed('o', 9n, 300)],
    },
    true,
  ],
  [
    'a drift and a write that took effect at its end',
    { drifts: [drift('d', -16n)], unsettled: [executed('o', 9n, 200)] },
    false,
  ],
  [
    'an unknown write and another one that was sent before it ended',
    { unknown: [unknown('u', 16n)], unsettled: [executed('o', 9n, 209)] },
    true,
  ],
  [
    'an unknown write and another one that was sent when it ended',
    { unknown: [unknown('u', 16n)], unsettled: [executed('o', 9n, 210)] },
    false,
  ],
  ['a drift of twice its effect', { drifts: [drift('d', -14n)] }, false],
  ['a drift beside eight writes', { drifts: [drift('d', -30n)], unsettled: nines(8) }, false],
  ['a drift beside nine writes', { drifts: [drift('d', -30n)], unsettled: nines(9) }, true],
  [
    'a drift beside many writes that take away',
    { drifts: [drift('d', 30n)], unsettled: nines(20).map((o) => ({ ...o, effect: -9n })) },
    true,
  ],
  ['a change of zero beside a drift', { drifts: [drift('d', -8n), drift('e', 8n)] }, false],
];

function nines(count: number) {
  return Array.from({ length: count }, (_, n) => executed(`o${n}`, 9n));
}

describe('Whether the effect of an executed write of 7 could be held by something else', () => {
  it.each(CASES)('by %s: %o', (_title, doubts, isHeld) => {
    const all = { drifts: [], unknown: [], unsettled: [], ...doubts };
    const operation = executed('x', 7n);
    const held = heldBy(operation, { ...all, unsettled: [operation, ...all.unsettled] });
    expect(held !== undefined).toBe(isHeld);
    if (held) {
      expect(held.drifts).toEqual(all.drifts.map(({ id }) => id));
      expect(held.operations).toEqual(all.unknown.map(({ id }) => id));
    }
  });
});
