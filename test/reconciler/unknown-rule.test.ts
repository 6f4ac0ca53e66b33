import { describe, expect, it } from 'vitest';
import {
  chanceOfCoincidence,
  solveJointly,
  type WalletEvidence,
} from '../../src/reconciler/unknown-rule.ts';
import { at } from './parts.ts';

/**
 * A wallet that is off by so much, with what the look may show: [id, effect], `*` for settled fate.
 */
function wallet(key: string, residual: bigint, ...optional: [string, bigint][]): WalletEvidence {
  return {
    key,
    residual,
    optional: optional.map(([id, effect]) => ({
      id: id.replace('*', ''),
      effect,
      settled: id.endsWith('*'),
    })),
    lookId: `look_${key}`,
    startedAt: at(key === 'w1' ? 1_000 : 2_000),
    endedAt: at(key === 'w1' ? 1_010 : 2_010),
  };
}

describe('Lost payments are solved jointly', () => {
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
      'Two equal ones that the other wallets tell apart',
      [
        wallet('w1', -5n, ['a*', -5n], ['b*', -5n]),
        wallet('w2', 5n, ['a*', 5n]),
        wallet('w3', 0n, ['b*', 5n]),
      ],
      { a: 'all', b: 'none' },
    ],
    [
      'A settled one that one wallet shows and the other does not',
      [wallet('w1', -5n, ['a*', -5n]), wallet('w2', 0n, ['a*', 5n])],
      'none',
    ],
    [
      'A fresh one that one wallet shows and the other not yet',
      [wallet('w1', -5n, ['a', -5n]), wallet('w2', 0n, ['a', 5n])],
      { a: 'open' },
    ],
    [
      'A settled one beside a fresh one that may have reached one wallet only',
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
      'One beside a write under way that is told apart',
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

  it('An explanation rests on the earliest start and the latest end of its looks', () => {
    const solved = solveJointly([wallet('w2', 5n, ['a*', 5n]), wallet('w1', -5n, ['a*', -5n])]);
    expect(solved).toMatchObject({
      lookIds: ['look_w2', 'look_w1'],
      startedAt: at(1_000),
      endedAt: at(2_010),
    });
  });
});

describe('The chance of an equal outside change', () => {
  it.each([
    ['Without observation nothing is known', 0, 0, 1_000, 1],
    ['A week without a change makes a window of a minute safe', 0, 700_000_000, 60_000, 8.57e-5],
    ['One change in the week does not', 1, 700_000_000, 60_000, 1.714e-4],
    ['It is never more than certain', 9, 1_000, 60_000, 1],
  ])('%s', (_title, changes, observedMs, windowMs, chance) => {
    expect(chanceOfCoincidence(changes, observedMs, windowMs)).toBeCloseTo(chance, 6);
  });
});
