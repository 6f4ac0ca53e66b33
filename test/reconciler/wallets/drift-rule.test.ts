import { describe, expect, it } from 'vitest';
import { driftStep } from '../../../src/reconciler/wallets/drift-rule.ts';
import { at, observed } from '../builders.ts';

const observation = observed(0n, 10_000);
const before = { amount: 5n, at: at(9_000) };
const drift = (id: string, amount: bigint) => ({ id, amount });

describe('A residual that nothing explains', () => {
  it.each([
    ['A residual of zero leads to nothing', 0n, before, [], { step: 'none' }],
    [
      'A first residual is suspected',
      5n,
      undefined,
      [],
      { step: 'suspect', suspicion: { amount: 5n, at: at(10_010) } },
    ],
    [
      'Another amount is a new suspicion',
      6n,
      before,
      [],
      { step: 'suspect', suspicion: { amount: 6n, at: at(10_010) } },
    ],
    [
      'The same amount in a later observation is a drift',
      5n,
      before,
      [],
      { step: 'open', amount: 5n, suspectedAt: at(9_000) },
    ],
    [
      'The same amount in an overlapping observation confirms nothing',
      5n,
      { amount: 5n, at: at(10_000) },
      [],
      { step: 'suspect', suspicion: { amount: 5n, at: at(10_000) } },
    ],
    [
      'A further change beside an open drift is a separate drift',
      5n,
      before,
      [drift('a', 7n)],
      { step: 'open', amount: 5n, suspectedAt: at(9_000) },
    ],
    [
      'What takes back all of them returns all of them',
      5n,
      before,
      [drift('a', -7n), drift('b', 2n)],
      { step: 'return', drifts: [drift('a', -7n), drift('b', 2n)], suspectedAt: at(9_000) },
    ],
    [
      'What takes back one of them returns that one',
      5n,
      before,
      [drift('a', -5n), drift('b', 2n)],
      { step: 'return', drifts: [drift('a', -5n)], suspectedAt: at(9_000) },
    ],
    [
      'One equal drift is preferred to two that sum to the residual',
      5n,
      before,
      [drift('a', -3n), drift('b', -2n), drift('c', -5n), drift('d', 1n)],
      { step: 'return', drifts: [drift('c', -5n)], suspectedAt: at(9_000) },
    ],
    [
      'A partial return is a separate drift',
      5n,
      before,
      [drift('a', -7n)],
      { step: 'open', amount: 5n, suspectedAt: at(9_000) },
    ],
  ] as const)('%s', (_title, residual, suspicion, open, step) => {
    expect(driftStep(residual, suspicion, [...open], observation)).toEqual(step);
  });
});
