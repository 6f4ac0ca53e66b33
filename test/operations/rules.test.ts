/** The states of an operation, as a table; what an answer makes of one; group commit. */
import { describe, expect, it, test } from 'vitest';
import { conclusionMove } from '../../src/operations/conclusion.ts';
import { groupCommit } from '../../src/operations/intake/group-commit.ts';
import {
  FOLLOWS,
  KINDS,
  NFT_KINDS,
  outcomeOf,
  type State,
  statesBefore,
  TOKEN_KINDS,
} from '../../src/operations/operations.ts';
import { until } from '../harness/until.ts';
import { conclusion } from './journal-parts.ts';

/** The design's diagram, once more: from, to, and what the state means for the books. */
const TABLE: [State, State[], string][] = [
  ['recorded', ['sending', 'queued', 'rejected'], 'open'],
  ['queued', ['sending', 'cancelled', 'rejected'], 'open'],
  ['sending', ['accepted', 'rejected', 'unknown', 'queued'], 'open'],
  ['unknown', ['executed', 'not_executed', 'undecided', 'accepted', 'rejected'], 'open'],
  ['undecided', ['executed', 'not_executed', 'accepted', 'rejected'], 'open'],
  ['executed', ['settled', 'failed', 'not_executed', 'accepted', 'rejected'], 'executed'],
  ['not_executed', ['executed', 'accepted', 'rejected'], 'not_executed'],
  ['accepted', ['settled', 'failed'], 'executed'],
  ['rejected', ['accepted'], 'not_executed'],
  ['cancelled', [], 'not_executed'],
  ['settled', ['not_executed'], 'executed'],
  ['failed', [], 'not_executed'],
];
const STATES = TABLE.map(([state]) => state);

describe('The states of an operation', () => {
  it.each(TABLE)('%s may become %j, and its outcome is %s', (state, next, outcome) => {
    expect([...FOLLOWS[state]].toSorted()).toEqual(next.toSorted());
    expect(outcomeOf(state)).toBe(outcome);
  });

  test('Are all in the table, and each is reached from where it may follow', () => {
    expect(Object.keys(FOLLOWS).toSorted()).toEqual(STATES.toSorted());
    for (const to of STATES)
      expect(statesBefore(to)).toEqual(STATES.filter((from) => FOLLOWS[from].includes(to)));
  });

  test("The service's own late answer wins over whatever is not final", () => {
    const final: State[] = ['accepted', 'settled', 'failed', 'rejected', 'cancelled'];
    for (const state of STATES.filter(
      (s) => !final.includes(s) && s !== 'recorded' && s !== 'queued',
    ))
      for (const answer of ['accepted', 'rejected'] as const)
        expect([state, FOLLOWS[state].includes(answer)]).toEqual([state, true]);
    expect(FOLLOWS.rejected).toEqual(['accepted']);
  });

  test('Kinds are writes of tokens, of NFTs, or other', () => {
    expect([...TOKEN_KINDS, ...NFT_KINDS, 'other'].toSorted()).toEqual([...KINDS].toSorted());
  });
});

describe('What an answer makes of a send', () => {
  it.each([
    ['accepted', 'accepted', undefined, undefined],
    ['rejected', 'rejected', 'refused', undefined],
    ['unavailable', 'rejected', 'unavailable', false],
    ['not_sent', 'rejected', 'not_sent', false],
    ['unknown', 'unknown', 'unknown', undefined],
  ] as const)('%s makes it %s, of class %s, key held: %s', (cls, to, errorClass, keyHeld) => {
    const move = conclusionMove(conclusion('op_1', cls, 5), 'dmn_1');
    expect(move).toMatchObject({ id: 'op_1', to, at: 5, answeredAt: 5, daemonId: 'dmn_1' });
    expect([move.errorClass, move.keyHeld]).toEqual([errorClass, keyHeld]);
  });

  test('Keeps numbers and answer of an accepted one, and the bounded words of a refused', () => {
    expect(conclusionMove(conclusion('op_1', 'accepted', 5), 'd')).toMatchObject({
      txAppNo: 7n,
      txLogNo: 2n ** 70n,
      txHash: null,
      answerStatus: 200,
      effectiveAt: 5,
      effectiveBasis: 'answer',
    });
    const long = conclusion('op_1', 'rejected', 5, { message: 'x'.repeat(9_000) });
    const move = conclusionMove(long, 'd');
    expect(move).toMatchObject({ errorStatus: 406, errorCode: '198' });
    expect(move.errorMessage).toHaveLength(500);
  });
});

/** A commit that waits until it is let through, and remembers its groups. */
function gated() {
  const groups: number[][] = [];
  const waiting: (() => void)[] = [];
  return {
    groups,
    commit: (items: number[]) =>
      new Promise<number[]>((resolve, reject) => {
        groups.push(items);
        const bad = items.find((item) => item < 0);
        waiting.push(() =>
          bad === undefined ? resolve(items.map((item) => item * 10)) : reject(new Error(`${bad}`)),
        );
      }),
    open: () => waiting.shift()?.(),
    async openAll() {
      for (let idle = 0; idle < 20; idle++) {
        if (waiting.length > 0) idle = 0;
        waiting.shift()?.();
        await Promise.resolve();
      }
    },
  };
}

describe('Group commit', () => {
  const bounds = { rowsMax: 3, queueMax: 5, concurrency: 1, pauseMsPerRow: 0, pauseMaxMs: 0 };

  test('One row waits for nobody; those that come meanwhile share the next commits', async () => {
    const { commit, groups, openAll } = gated();
    const group = groupCommit(commit, bounds, () => true);
    const all = [1, 2, 3, 4, 5, 6].map((item) => group.add(item));
    expect(groups).toEqual([[1]]);
    await openAll();
    expect(await Promise.all(all)).toEqual([10, 20, 30, 40, 50, 60]);
    expect(groups).toEqual([[1], [2, 3, 4], [5, 6]]);
  });

  test('After several rows it rests, so that more come together; a full commit does not wait', async () => {
    const { commit, groups, open, openAll } = gated();
    const group = groupCommit(commit, { ...bounds, pauseMsPerRow: 10, pauseMaxMs: 15 }, () => true);
    const add = (...items: number[]) => items.map((item) => group.add(item));
    const first = add(1, 2, 3);
    await openAll();
    await Promise.all(first);
    expect(groups).toEqual([[1], [2, 3]]);
    const second = add(4, 5);
    expect(groups).toHaveLength(2);
    const third = add(6);
    expect(groups[2]).toEqual([4, 5, 6]);
    open();
    await Promise.all([...second, ...third]);
    const [seventh] = add(7);
    expect(groups).toHaveLength(3);
    await until(async () => groups[3]);
    await openAll();
    expect(await seventh).toBe(70);
  });

  test('Two lanes commit side by side', () => {
    const { commit, groups } = gated();
    const group = groupCommit(commit, { ...bounds, concurrency: 2 }, () => true);
    for (const item of [1, 2, 3, 4]) void group.add(item);
    expect(groups).toEqual([[1], [2]]);
  });

  test('One bad row hurts only itself', async () => {
    const { commit, groups, openAll } = gated();
    const group = groupCommit(commit, bounds, () => true);
    const all = Promise.allSettled([1, 2, -3, 4].map((item) => group.add(item)));
    await openAll();
    expect(await all).toMatchObject([
      { value: 10 },
      { value: 20 },
      { reason: { message: '-3' } },
      { value: 40 },
    ]);
    expect(groups).toEqual([[1], [2, -3, 4], [2], [-3], [4]]);
  });

  test('When trying alone is of no use, all of the group hear the error', async () => {
    const { commit, groups, openAll } = gated();
    const group = groupCommit(commit, bounds, () => false);
    const all = Promise.allSettled([1, 2, -3, 4].map((item) => group.add(item)));
    await openAll();
    const told = (await all).map(({ status }) => status);
    expect(told).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
    expect(groups).toHaveLength(2);
  });

  test('What does not fit into the queue is refused at once, and the rest goes on', async () => {
    const { commit, openAll } = gated();
    const group = groupCommit(commit, bounds, () => true);
    const all = Promise.allSettled([1, 2, 3, 4, 5, 6, 7].map((item) => group.add(item)));
    await openAll();
    const told = await all;
    expect(told.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 6 }, () => 'fulfilled'),
      'rejected',
    ]);
    expect(told[6]).toMatchObject({ reason: { code: 'database_unavailable' } });
    const later = group.add(8);
    await openAll();
    expect(await later).toBe(80);
  });
});
