import { describe, expect, it } from 'vitest';
import {
  canBeExplained,
  includedAtExtreme,
  isWithin,
  solveJointly,
  type WalletEvidence,
} from '../../../src/reconciler/unknown/rule.ts';
import { at } from '../builders.ts';

/**
 * A wallet with this residual and its possible operations: [id, effect], `*` for quiescent.
 */
function wallet(key: string, residual: bigint, ...possible: [string, bigint][]): WalletEvidence {
  return {
    balance: residual,
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

describe('The polls around a send (at most 600,000 apart)', () => {
  it.each([
    ['Without a poll before the send they are no bracket', undefined, 700_000, false],
    ['Polls close to each other are', 100_000, 700_000, true],
    ['Polls far from each other are not', 99_999, 700_000, false],
  ])('%s', (_title, before, after, within) => {
    expect(isWithin({ before, after }, 600_000)).toBe(within);
  });
});

describe('A wallet with more possible operations than are tried as subsets', () => {
  it.each([
    ['All decreases show', -60n, { up: 0n, down: -60n }, -5n, true],
    ['None of the decreases shows', 0n, { up: 0n, down: -60n }, -5n, false],
    ['Some of the decreases show', -55n, { up: 0n, down: -60n }, -5n, undefined],
    ['Increases show, and decreases do not', 40n, { up: 40n, down: -60n }, 5n, true],
    ['Decreases do not show where all increases do', 40n, { up: 40n, down: -60n }, -5n, false],
    ['Between the extremes nothing is known', 0n, { up: 40n, down: -60n }, 5n, undefined],
    ['Beyond them neither', 41n, { up: 40n, down: -60n }, 5n, undefined],
    ['What changes nothing is in none', 40n, { up: 40n, down: -60n }, 0n, false],
  ] as const)('%s', (_title, residual, sums, effect, included) => {
    expect(includedAtExtreme(effect, residual, sums)).toBe(included);
  });
});

describe('A wallet alone', () => {
  it.each([
    ['is explained by a subset', wallet('w1', 12n, ['a', 5n], ['b', 7n]), true],
    ['is explained by nothing', wallet('w1', 0n, ['a', 5n]), true],
    ['is not explained', wallet('w1', 6n, ['a', 5n], ['b', 7n]), false],
    [
      'may be explained where there are too many to try',
      wallet('w1', 2n ** 60n, ...powers(60)),
      true,
    ],
  ] as const)('%s', (_title, evidence, explained) => {
    expect(canBeExplained(evidence)).toBe(explained);
  });

  it('Too many explanations to try are no finding', () => {
    expect(solveJointly([wallet('w1', 2n ** 60n, ...powers(60))])).toBe('too_many');
  });

  it('What changes nothing is in no sum of decreases either', () => {
    expect(includedAtExtreme(0n, -60n, { up: 0n, down: -60n })).toBe(false);
    expect(includedAtExtreme(5n, -60n, { up: 40n, down: -60n })).toBe(false);
  });
});

function powers(n: number): [string, bigint][] {
  return Array.from({ length: n }, (_, i) => [`o${i}*`, 3n * 2n ** BigInt(i)]);
}
