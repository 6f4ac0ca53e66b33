import { describe, expect, it } from 'vitest';
import {
  evaluateBalance,
  expectationOf,
  inclusionOf,
} from '../../../src/reconciler/wallets/rule.ts';
import { at, baseline, observed, part, write } from '../builders.ts';

const LAG = 1_000;

describe('What a look shows of a write (look from 10,000 to 10,010, read lag 1,000)', () => {
  const observation = observed(0n, 10_000);
  it.each([
    ['An answered write from long before must be in it', 'accepted', 0, 8_999, 'required'],
    ['One answered just a read lag before may be in it', 'accepted', 0, 9_000, 'possible'],
    ['One answered while it ran may be in it', 'accepted', 9_990, 10_005, 'possible'],
    ['One sent in its last millisecond may be in it', 'accepted', 10_010, 10_020, 'possible'],
    ['One sent after it cannot be in it', 'accepted', 10_011, 10_020, 'excluded'],
    ['One under way may be in it', 'sending', 9_000, undefined, 'possible'],
    ['A lost one may be in it, however old', 'unknown', 0, 100, 'possible'],
    ['One that people have to decide may be in it', 'undecided', 0, 100, 'possible'],
    ['A lost one that was sent after it cannot be in it', 'unknown', 10_011, 10_020, 'excluded'],
    ['A refused one cannot be in it', 'rejected', 0, 100, 'excluded'],
    ['One found not executed cannot be in it', 'not_executed', 0, 100, 'excluded'],
    ['One that failed cannot be in it', 'failed', 0, 100, 'excluded'],
    ['A settled one from before must be in it', 'settled', 0, 100, 'required'],
  ] as const)('%s', (_title, state, sent, answered, inclusion) => {
    const times = answered === undefined ? { sent } : { sent, answered };
    expect(inclusionOf(write(state, times), observation, LAG)).toBe(inclusion);
  });

  it('A write found executed must be in it only a read lag after the look that found it', () => {
    const found = (ms: number) => write('executed', { sent: 0, answered: 50, effectiveAt: at(ms) });
    expect(inclusionOf(found(8_999), observation, LAG)).toBe('required');
    expect(inclusionOf(found(9_500), observation, LAG)).toBe('possible');
  });

  it('A write reported later counts from when it happened, not from when it was told', () => {
    const told = write('accepted', { sent: 20_000, sentAt: null, effectiveAt: at(2_000) });
    expect(inclusionOf(told, observation, LAG)).toBe('required');
  });
});

describe('What a balance is compared with (look from 10,000 to 10,010, read lag 1,000)', () => {
  const old = { sent: 0, answered: 100 };
  const late = { sent: 11_000, answered: 11_100 };
  it.each([
    ['An empty wallet is compared with its books and its drifts', [], 107n, 0],
    ['An executed write that is not posted yet counts', [part(5n, 'accepted', old)], 112n, 0],
    ['A posted one does not count twice', [part(5n, 'accepted', { ...old, postings: 1 })], 107n, 0],
    [
      'One that was posted but came after the look is taken out',
      [part(5n, 'accepted', { ...late, postings: 1 })],
      102n,
      0,
    ],
    [
      'One that failed after it was posted is taken out before its reversal',
      [part(5n, 'failed', { ...old, postings: 1 })],
      102n,
      0,
    ],
    [
      'One posted and taken back counts no more',
      [part(5n, 'not_executed', { ...old, postings: 2 })],
      107n,
      0,
    ],
    [
      'A posted one that the look may not show yet is optional',
      [part(5n, 'accepted', { sent: 9_000, answered: 9_900, postings: 1 })],
      102n,
      1,
    ],
    ['A write without effect is neither', [part(0n, 'unknown', old)], 107n, 0],
  ] as const)('%s', (_title, parts, base, possible) => {
    const found = expectationOf(observed(0n, 10_000), baseline(100n, [...parts], 7n), LAG);
    expect(found).toMatchObject({ base, complete: true });
    expect(found.possible).toHaveLength(possible);
  });
});

describe('The verdict on a balance of 100 expected', () => {
  const unknown = (effect: bigint) => part(effect, 'unknown');
  const undecided = (effect: bigint) => part(effect, 'undecided');
  const moving = (effect: bigint) => part(effect, 'sending');
  const quiet = { result: 'explained', quiet: true, unique: true };
  const unquiet = { result: 'explained', quiet: false, unique: true };
  it.each([
    ['Nothing optional and nothing off is clean', 100n, [], quiet],
    ['Nothing optional and 5 more is off by 5', 105n, [], { result: 'unexplained', residual: 5n }],
    ['A lost write that shows explains', 105n, [unknown(5n)], unquiet],
    ['A lost write that does not show explains', 100n, [unknown(5n)], unquiet],
    [
      'Two equal lost writes of which one shows have two explanations',
      105n,
      [unknown(5n), unknown(5n)],
      { result: 'explained', quiet: false, unique: false },
    ],
    [
      'What no subset explains waits while something is under way',
      103n,
      [unknown(5n), moving(-1n)],
      { result: 'inconclusive', cause: 'no_subset_explains' },
    ],
    ['What people have to decide explains where it can', 105n, [undecided(5n)], quiet],
    [
      'What people have to decide never hides a drift',
      103n,
      [undecided(5n)],
      { result: 'unexplained', residual: 3n },
    ],
    [
      'What the looks believed of it is not part of the drift',
      112n,
      [part(5n, 'undecided', { evidence: { indicated: 'executed' } })],
      { result: 'unexplained', residual: 7n },
    ],
    [
      'Two equal ones that people have to decide leave it open which one shows',
      105n,
      [undecided(5n), undecided(5n)],
      { result: 'explained', quiet: false, unique: false },
    ],
    [
      'Beside a lost write, what people have to decide does not make it off',
      103n,
      [undecided(5n), unknown(7n)],
      { result: 'inconclusive', cause: 'no_subset_explains' },
    ],
    [
      'Amounts that cancel have two explanations of nothing',
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

  it('More writes than were read say nothing, even if the sum comes right', () => {
    const result = evaluateBalance(100n, { base: 100n, possible: [], complete: false });
    expect(result).toEqual({ result: 'inconclusive', cause: 'too_many_open' });
  });

  it('More subsets than can be tried say nothing', () => {
    const many = Array.from({ length: 40 }, (_, i) => moving(2n ** BigInt(i) * 3n));
    const result = evaluateBalance(100n + 2n ** 40n, {
      base: 100n,
      possible: many,
      complete: true,
    });
    expect(result).toEqual({ result: 'inconclusive', cause: 'too_many_open' });
  });
});
