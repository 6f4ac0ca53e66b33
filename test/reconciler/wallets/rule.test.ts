import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBalance } from '../../../src/reconciler/wallets/rule.ts';
import { expectation, possible } from '../builders.ts';

const range = (min: bigint, max = min) => ({ min, max });
const NONE = range(0n);

describe('An observed balance where 100 is expected', () => {
  const sending = (effect: bigint) => possible(effect, 'sending');
  const unknown = (effect: bigint) => possible(effect, 'unknown');
  const undecided = (effect: bigint) => possible(effect, 'undecided');
  const many = Array.from({ length: 13 }, () => sending(10n));
  const quiet = { result: 'explained', quiet: true, unique: true };
  const unquiet = { result: 'explained', quiet: false, unique: true };
  const several = { result: 'explained', quiet: false, unique: false };
  const differs = (min: bigint, max = min) => ({
    result: 'unexplained',
    difference: range(min, max),
  });
  it.each([
    ['An equal balance is quiet', 100n, [], NONE, quiet],
    ['5 more are a difference of 5', 105n, [], NONE, differs(5n)],
    ['5 more beside an open drift of 5 are quiet', 105n, [], range(5n), quiet],
    ['100 beside an open drift of 5 is a difference of 0', 100n, [], range(5n), differs(0n)],
    ['An unknown write that shows explains it', 105n, [unknown(5n)], NONE, unquiet],
    ['An unknown write that does not show leaves it explained', 100n, [unknown(5n)], NONE, unquiet],
    [
      'Two equal unknown writes of which one shows are two explanations',
      105n,
      [unknown(5n), unknown(5n)],
      NONE,
      several,
    ],
    [
      'Amounts that cancel are two explanations of zero',
      100n,
      [sending(5n), sending(-5n)],
      NONE,
      several,
    ],
    [
      'What no subset explains is a difference between the least and the greatest',
      103n,
      [unknown(5n), sending(-1n)],
      NONE,
      differs(-2n, 4n),
    ],
    ['An undecided write explains what it can', 105n, [undecided(5n)], NONE, quiet],
    ['An undecided write hides no difference', 103n, [undecided(5n)], NONE, differs(3n)],
    [
      'An undecided write that its evidence calls executed is not part of the difference',
      112n,
      [possible(5n, 'undecided', { indicated: 'executed' })],
      NONE,
      differs(7n),
    ],
    [
      'Two equal undecided writes are two explanations',
      105n,
      [undecided(5n), undecided(5n)],
      NONE,
      several,
    ],
    ['Thirteen possible writes of 10 explain any balance up to 230', 177n, many, NONE, several],
    ['Beyond their sum the difference has bounds', 240n, many, NONE, differs(10n, 140n)],
    ['Below the base too', 90n, many, NONE, differs(-140n, -10n)],
    ['A drift with bounds explains what lies between them', 103n, [], range(1n, 9n), quiet],
    [
      'A drift with bounds does not explain what lies outside',
      110n,
      [],
      range(1n, 9n),
      differs(10n),
    ],
    [
      'Beside an undecided write a drift with bounds becomes exact',
      103n,
      [undecided(5n)],
      range(-2n, 3n),
      { ...quiet, difference: range(3n) },
    ],
  ] as const)('%s', (_title, balance, operations, drift, result) => {
    expect(compareBalance(balance, expectation(100n, operations), drift)).toMatchObject(result);
  });

  it('Only what a unique explanation includes is shown', () => {
    const [a, b] = [unknown(5n), unknown(7n)];
    const one = compareBalance(105n, expectation(100n, [a, b]), NONE);
    expect(one).toMatchObject({ shown: [a.id] });
    const two = compareBalance(105n, expectation(100n, [a, unknown(5n)]), NONE);
    expect(two).toMatchObject({ shown: [] });
  });
});

it('What some of the possible operations changed is always explained, however many there are', () => {
  const effects = fc.array(fc.tuple(fc.bigInt({ min: -9n, max: 9n }), fc.boolean()), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(fc.bigInt(), effects, fc.bigInt({ min: -9n, max: 9n }), (base, all, drift) => {
      const operations = all.map(([effect]) => possible(effect, 'sending'));
      const shown = all.reduce((sum, [effect, shows]) => sum + (shows ? effect : 0n), 0n);
      const found = compareBalance(
        base + shown + drift,
        expectation(base, operations),
        range(drift),
      );
      expect(found.result).toBe('explained');
    }),
    { numRuns: 300 },
  );
});

it('With too many possible operations the difference has the bounds of their sums, and the drift', () => {
  const many = [
    ...Array.from({ length: 13 }, () => possible(10n, 'sending')),
    possible(-7n, 'sending'),
  ];
  const found = compareBalance(150n, expectation(100n, many), range(-2n, 3n));
  expect(found).toEqual({
    result: 'explained',
    unique: false,
    quiet: false,
    shown: [],
    difference: range(-2n, 3n),
  });
  const at = (balance: bigint) => compareBalance(balance, expectation(100n, many), range(0n));
  expect(at(93n)).toMatchObject({ result: 'explained', difference: range(0n) });
  expect(at(92n)).toEqual({ result: 'unexplained', difference: range(-138n, -1n) });
});
