import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { differencesOfSums, subsetsWithSum } from '../../src/kernel/subset-sums.ts';

/** Every subset, tried one by one. */
function allSubsets(vectors: bigint[][], target: bigint[]): string[] {
  const found: string[] = [];
  for (let mask = 0; mask < 1 << vectors.length; mask++) {
    const chosen = vectors.map((_, i) => i).filter((i) => mask & (1 << i));
    const isRight = target.every(
      (amount, d) => chosen.reduce((sum, i) => sum + (vectors[i]?.[d] ?? 0n), 0n) === amount,
    );
    if (isRight) found.push(chosen.join());
  }
  return found.sort();
}

describe('Differences of two sums', () => {
  it.each([
    [[], [0n]],
    [[5n], [0n, 5n, -5n]],
    [
      [5n, 3n],
      [0n, 3n, -3n, 5n, 8n, 2n, -5n, -2n, -8n],
    ],
  ] as const)('Of [%s] are [%s]', (amounts, differences) => {
    expect(differencesOfSums(amounts)).toEqual(differences);
  });
});

describe('Subsets with a sum', () => {
  it.each([
    ['No items sum to zero', [], [0n], [[]]],
    ['No items sum to nothing but zero', [], [1n], []],
    ['The empty subset comes first', [[5n], [-5n]], [0n], [[], [0, 1]]],
    ['An item of zero is in one subset and not in the other', [[0n]], [0n], [[], [0]]],
    [
      'Every dimension must reach its target',
      [
        [5n, -5n],
        [5n, 0n],
      ],
      [5n, -5n],
      [[0]],
    ],
    ['A dimension that no item changes must already be at its target', [[5n, 0n]], [5n, 1n], []],
  ] as const)('%s', (_title, vectors, target, found) => {
    expect(subsetsWithSum(vectors, target, 4)).toEqual(found);
  });

  it('The search finds exactly the subsets that trying all of them finds', () => {
    const amount = fc.bigInt({ min: -4n, max: 4n });
    const given = fc.integer({ min: 1, max: 3 }).chain((dimensions) =>
      fc.tuple(
        fc.array(fc.array(amount, { minLength: dimensions, maxLength: dimensions }), {
          maxLength: 7,
        }),
        fc.array(amount, { minLength: dimensions, maxLength: dimensions }),
      ),
    );
    fc.assert(
      fc.property(given, ([vectors, target]) => {
        const found = subsetsWithSum(vectors, target, 1_000);
        expect(found === 'too_many' ? found : found.map((s) => s.join()).sort()).toEqual(
          allSubsets(vectors, target),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('Two hundred gives from one operator to different wallets are told apart', () => {
    const wallets = 200;
    // Dimension 0 is the operator; each give has a receiver of its own.
    const vectors = Array.from({ length: wallets }, (_, i) =>
      Array.from({ length: wallets + 1 }, (__, d) => (d === 0 ? -5n : d === i + 1 ? 5n : 0n)),
    );
    const shown = (d: number) => d > 0 && d % 3 === 0;
    const target = vectors[0]?.map((_, d) => (shown(d) ? 5n : 0n)) ?? [];
    const executed = target.flatMap((_, d) => (shown(d) ? [d - 1] : []));
    const operator = -5n * BigInt(executed.length);
    expect(subsetsWithSum(vectors, [operator, ...target.slice(1)], 2)).toEqual([executed]);
  });

  it('Two writes on each of forty wallets are told apart in every order', () => {
    const of = (amount: bigint) =>
      Array.from({ length: 40 }, (_, i) =>
        Array.from({ length: 40 }, (__, d) => (d === i ? amount : 0n)),
      );
    const target = Array.from({ length: 40 }, () => 1n);
    const first = Array.from({ length: 40 }, (_, i) => i);
    expect(subsetsWithSum([...of(1n), ...of(2n)], target, 2)).toEqual([first]);
    expect(subsetsWithSum([...of(-1n), ...of(1n)], target, 2)).toEqual([first.map((i) => i + 40)]);
  });

  it('A search that reaches its bound answers too_many', () => {
    const vectors = Array.from({ length: 60 }, (_, i) => [2n ** BigInt(i) * 3n]);
    expect(subsetsWithSum(vectors, [2n ** 60n], 2)).toBe('too_many');
  });
});

describe('The bounds of the search', () => {
  const ones = (n: number) => Array.from({ length: n }, () => [1n]);

  it('No more subsets are found than were asked for', () => {
    expect(subsetsWithSum(ones(3), [1n], 3)).toEqual([[2], [1], [0]]);
    expect(subsetsWithSum(ones(3), [1n], 2)).toEqual([[2], [1]]);
    expect(subsetsWithSum(ones(3), [1n], 1)).toEqual([[2]]);
  });

  it('All subsets of fourteen amounts are tried, and a search of one amount more may give up', () => {
    const none = (n: number) =>
      subsetsWithSum(
        Array.from({ length: n }, () => [0n]),
        [0n],
        1e6,
      );
    expect(none(14)).toHaveLength(2 ** 14);
    expect(none(15)).toBe('too_many');
  });

  it('A search that was cut off has found nothing, even what came before', () => {
    const vectors = [...Array.from({ length: 60 }, (_, i) => [2n ** BigInt(i) * 3n]), [1n]];
    expect(subsetsWithSum(vectors, [1n + 3n * (2n ** 60n - 2n)], 2)).toEqual([
      Array.from({ length: 60 }, (_, i) => i + 1),
    ]);
    expect(subsetsWithSum(ones(40), [20n], 1e6)).toBe('too_many');
  });
});
