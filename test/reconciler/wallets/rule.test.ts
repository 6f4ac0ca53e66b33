import { describe, expect, it } from 'vitest';
import {
  evaluateBalance,
  expectationOf,
  inclusionOf,
} from '../../../src/reconciler/wallets/rule.ts';
import { at, baseline, observed, part, write } from '../builders.ts';

const LAG = 1_000;

describe('Which operations an observation includes (from 10,000 to 10,010, read lag 1,000)', () => {
  const observation = observed(0n, 10_000);
  it.each([
    ['One answered long before is required', 'accepted', 0, 8_999, 'required'],
    ['One answered a read lag before is possible', 'accepted', 0, 9_000, 'possible'],
    ['One answered meanwhile is possible', 'accepted', 9_990, 10_005, 'possible'],
    ['One sent in its last millisecond is possible', 'accepted', 10_010, 10_020, 'possible'],
    ['One sent after it is excluded', 'accepted', 10_011, 10_020, 'excluded'],
    ['One in flight is possible', 'sending', 9_000, undefined, 'possible'],
    ['An unknown one is possible at any age', 'unknown', 0, 100, 'possible'],
    ['An undecided one is possible', 'undecided', 0, 100, 'possible'],
    ['An unknown one sent after it is excluded', 'unknown', 10_011, 10_020, 'excluded'],
    ['A rejected one is excluded', 'rejected', 0, 100, 'excluded'],
    ['One found not executed is excluded', 'not_executed', 0, 100, 'excluded'],
    ['A failed one is excluded', 'failed', 0, 100, 'excluded'],
    ['A settled one from before is required', 'settled', 0, 100, 'required'],
  ] as const)('%s', (_title, state, sent, answered, inclusion) => {
    const times = answered === undefined ? { sent } : { sent, answered };
    expect(inclusionOf(write(state, times), observation, LAG)).toBe(inclusion);
  });

  it('One found executed is required a read lag after the observation that found it', () => {
    const found = (ms: number) => write('executed', { sent: 0, answered: 50, effectiveAt: at(ms) });
    expect(inclusionOf(found(8_999), observation, LAG)).toBe('required');
    expect(inclusionOf(found(9_500), observation, LAG)).toBe('possible');
  });

  it('A reported operation counts from when it took effect, not from its report', () => {
    const reported = write('accepted', { sent: 20_000, sentAt: null, effectiveAt: at(2_000) });
    expect(inclusionOf(reported, observation, LAG)).toBe('required');
  });
});

describe('What a balance is compared with (observed from 10,000 to 10,010, read lag 1,000)', () => {
  const old = { sent: 0, answered: 100 };
  const late = { sent: 11_000, answered: 11_100 };
  it.each([
    ['Without operations: the ledger and the drifts', [], 107n, 0],
    ['An executed operation that is not posted counts', [part(5n, 'accepted', old)], 112n, 0],
    [
      'A posted one does not count twice',
      [part(5n, 'accepted', { ...old, posted: true })],
      107n,
      0,
    ],
    [
      'A posted one from after the observation is subtracted',
      [part(5n, 'accepted', { ...late, posted: true })],
      102n,
      0,
    ],
    [
      'A posted one that failed is subtracted before its reversal',
      [part(5n, 'failed', { ...old, posted: true })],
      102n,
      0,
    ],
    [
      'A reversed one does not count',
      [part(5n, 'not_executed', { ...old, posted: false })],
      107n,
      0,
    ],
    [
      'A posted one that may not show yet is possible',
      [part(5n, 'accepted', { sent: 9_000, answered: 9_900, posted: true })],
      102n,
      1,
    ],
    ['One without effect is neither', [part(0n, 'unknown', old)], 107n, 0],
  ] as const)('%s', (_title, parts, base, possible) => {
    const found = expectationOf(observed(0n, 10_000), baseline(100n, [...parts], 7n), LAG);
    expect(found).toMatchObject({ base, complete: true });
    expect(found.possible).toHaveLength(possible);
  });
});

describe('The result for an expected balance of 100', () => {
  const unknown = (effect: bigint) => part(effect, 'unknown');
  const undecided = (effect: bigint) => part(effect, 'undecided');
  const moving = (effect: bigint) => part(effect, 'sending');
  const quiet = { result: 'explained', quiet: true, unique: true };
  const unquiet = { result: 'explained', quiet: false, unique: true };
  it.each([
    ['Without possible operations an equal balance is quiet', 100n, [], quiet],
    [
      'Without possible operations 5 more are unexplained',
      105n,
      [],
      { result: 'unexplained', residual: 5n },
    ],
    ['An unknown write that shows explains it', 105n, [unknown(5n)], unquiet],
    ['An unknown write that does not show leaves it explained', 100n, [unknown(5n)], unquiet],
    [
      'Two equal unknown writes of which one shows are two explanations',
      105n,
      [unknown(5n), unknown(5n)],
      { result: 'explained', quiet: false, unique: false },
    ],
    [
      'What no subset explains is inconclusive while an operation is in flight',
      103n,
      [unknown(5n), moving(-1n)],
      { result: 'inconclusive', cause: 'no_subset_explains' },
    ],
    ['An undecided write explains what it can', 105n, [undecided(5n)], quiet],
    [
      'An undecided write hides no drift',
      103n,
      [undecided(5n)],
      { result: 'unexplained', residual: 3n },
    ],
    [
      'An undecided write that its evidence indicates is not part of the drift',
      112n,
      [part(5n, 'undecided', { evidence: { indicated: 'executed' } })],
      { result: 'unexplained', residual: 7n },
    ],
    [
      'Two equal undecided writes are two explanations',
      105n,
      [undecided(5n), undecided(5n)],
      { result: 'explained', quiet: false, unique: false },
    ],
    [
      'Beside an unknown write an undecided one does not make it unexplained',
      103n,
      [undecided(5n), unknown(7n)],
      { result: 'inconclusive', cause: 'no_subset_explains' },
    ],
    [
      'Amounts that cancel are two explanations of zero',
      100n,
      [moving(5n), moving(-5n)],
      { result: 'explained', quiet: false, unique: false },
    ],
  ] as const)('%s', (_title, balance, possible, verdict) => {
    const parts = [...possible];
    expect(evaluateBalance(balance, { base: 100n, possible: parts, complete: true })).toMatchObject(
      verdict,
    );
  });

  it('More operations than were read are inconclusive, even if the sum is right', () => {
    const result = evaluateBalance(100n, { base: 100n, possible: [], complete: false });
    expect(result).toEqual({ result: 'inconclusive', cause: 'too_many_open' });
  });

  it('More subsets than can be tried are inconclusive', () => {
    const many = Array.from({ length: 40 }, (_, i) => moving(2n ** BigInt(i) * 3n));
    const result = evaluateBalance(100n + 2n ** 40n, {
      base: 100n,
      possible: many,
      complete: true,
    });
    expect(result).toEqual({ result: 'inconclusive', cause: 'too_many_open' });
  });
});
