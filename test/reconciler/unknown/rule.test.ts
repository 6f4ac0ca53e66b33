import { describe, expect, it } from 'vitest';
import {
  chanceOfCoincidence,
  likeAmounts,
  solveJointly,
  type WalletEvidence,
} from '../../../src/reconciler/unknown/rule.ts';
import { at } from '../builders.ts';

/**
 * A wallet with this residual and its possible operations: [id, effect], `*` for quiescent.
 */
function wallet(key: string, residual: bigint, ...possible: [string, bigint][]): WalletEvidence {
  return {
    key,
    residual,
    possible: possible.map(([id, effect]) => ({
      id: id.replace('*', ''),
      effect,
      quiescent: id.endsWith('*'),
    })),
    observationId: `obs_${key}`,
    startedAt: at(key === 'w1' ? 1_000 : 2_000),
    endedAt: at(key === 'w1' ? 1_010 : 2_010),
  };
}

describe('Unknown token writes are solved jointly', () => {
  it.each([
    ['One that shows', [wallet('w1', 5n, ['a*', 5n])], { a: 'all' }],
    ['One that does not show', [wallet('w1', 0n, ['a*', 5n])], { a: 'none' }],
    ['What nothing explains', [wallet('w1', 3n, ['a*', 5n])], 'none'],
    [
      'Two equal ones of which one shows',
      [wallet('w1', 5n, ['a*', 5n], ['b*', 5n])],
      { a: 'open', b: 'open' },
    ],
    [
      'Two equal ones that other wallets distinguish',
      [
        wallet('w1', -5n, ['a*', -5n], ['b*', -5n]),
        wallet('w2', 5n, ['a*', 5n]),
        wallet('w3', 0n, ['b*', 5n]),
      ],
      { a: 'all', b: 'none' },
    ],
    [
      'A quiescent one that one wallet shows and the other does not',
      [wallet('w1', -5n, ['a*', -5n]), wallet('w2', 0n, ['a*', 5n])],
      'none',
    ],
    [
      'A fresh one that one wallet shows and the other not yet',
      [wallet('w1', -5n, ['a', -5n]), wallet('w2', 0n, ['a', 5n])],
      { a: 'open' },
    ],
    [
      'A quiescent one beside a fresh one that may have reached one wallet only',
      [wallet('w1', 0n, ['d', -5n]), wallet('w2', 5n, ['d', 5n], ['e*', 5n])],
      { d: 'open', e: 'open' },
    ],
    [
      'One that all explanations agree on, beside two that they do not',
      [wallet('w1', 25n, ['a*', 20n], ['b*', 5n], ['c*', 5n])],
      { a: 'all', b: 'open', c: 'open' },
    ],
    [
      'More explanations than can be weighed',
      [wallet('w1', 4n, ...Array.from({ length: 9 }, (_, i): [string, bigint] => [`o${i}*`, 1n]))],
      'several',
    ],
    [
      'One beside a distinguishable operation in flight',
      [wallet('w1', 5n, ['a*', 5n], ['b', 7n])],
      { a: 'all', b: 'none' },
    ],
    [
      'One that changes nothing beside one that shows',
      [wallet('w1', 5n, ['z*', 0n], ['a*', 5n])],
      { a: 'all' },
    ],
  ] as const)('%s', (_title, wallets, found) => {
    const solved = solveJointly(wallets);
    expect(typeof solved === 'string' ? solved : Object.fromEntries(solved.shown)).toEqual(found);
  });

  it('An explanation rests on the earliest start and the latest end of its observations', () => {
    const solved = solveJointly([wallet('w2', 5n, ['a*', 5n]), wallet('w1', -5n, ['a*', -5n])]);
    expect(solved).toMatchObject({
      observationIds: ['obs_w2', 'obs_w1'],
      startedAt: at(1_000),
      endedAt: at(2_010),
    });
  });
});

const DAY_MS = 86_400_000;
const over = (changes: number, days: number) => ({ changes, observedMs: days * DAY_MS });

describe('The chance of an equal outside change', () => {
  it.each([
    ['Without observed time it is one', over(0, 0), over(0, 0), 1_000, 1],
    [
      'Eight days without a change make a bracket of a minute safe',
      over(0, 8),
      over(0, 0),
      60,
      8.68e-5,
    ],
    ['One change in eight days does not', over(1, 8), over(0, 0), 60, 1.736e-4],
    ['It is at most one', over(9, 0.00001), over(0, 0), 60, 1],
    ['A new wallet has the rate of the others', over(0, 0), over(1, 40), 60, 3.47e-5],
    ['The others count for at most a month', over(0, 0), over(0, 4_000), 60, 2.315e-5],
    ['Its own changes weigh against them', over(3, 10), over(0, 4_000), 60, 6.94e-5],
  ])('%s', (_title, own, pool, windowS, chance) => {
    expect(chanceOfCoincidence(own, pool, windowS * 1_000)).toBeCloseTo(chance, 6);
  });

  it.each([
    ['Alone its own amount', [['a', -5n]], [5n]],
    [
      'Beside another one what both make',
      [
        ['a', 5n],
        ['b', 3n],
      ],
      [5n, 8n, 2n],
    ],
    ['One that changes nothing has none', [['b', 3n]], undefined],
  ] as const)('Amounts of a coincidence: %s', (_title, parts, amounts) => {
    const possible = parts.map(([id, effect]) => ({ id, effect }));
    expect(likeAmounts('a', possible)).toEqual(amounts);
  });
});
