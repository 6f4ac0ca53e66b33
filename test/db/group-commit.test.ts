/** Rows that arrive together share commits. */
import { describe, expect, it } from 'vitest';
import { groupCommit } from '../../src/db/access/group-commit.ts';
import { until } from '../harness/until.ts';

/** A commit that ends when the test says so, and the groups that were committed. */
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

  it('A first row is committed at once, and those that come meanwhile share the next commits', async () => {
    const { commit, groups, openAll } = gated();
    const group = groupCommit(commit, bounds);
    const all = [1, 2, 3, 4, 5, 6].map((item) => group.add(item));
    expect(groups).toEqual([[1]]);
    await openAll();
    expect(await Promise.all(all)).toEqual([10, 20, 30, 40, 50, 60]);
    expect(groups).toEqual([[1], [2, 3, 4], [5, 6]]);
  });

  it('After a commit of several rows the next one waits for more, unless it is full', async () => {
    const { commit, groups, open, openAll } = gated();
    const group = groupCommit(commit, { ...bounds, pauseMsPerRow: 10, pauseMaxMs: 15 });
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

  it('As many commits run at once as concurrency allows', () => {
    const { commit, groups } = gated();
    const group = groupCommit(commit, { ...bounds, concurrency: 2 });
    for (const item of [1, 2, 3, 4]) void group.add(item);
    expect(groups).toEqual([[1], [2]]);
  });

  it('Rows beyond the bound are refused at once, and the others are committed', async () => {
    const { commit, openAll } = gated();
    const group = groupCommit(commit, bounds);
    const all = Promise.allSettled([1, 2, 3, 4, 5, 6, 7].map((item) => group.add(item)));
    await openAll();
    const results = await all;
    expect(results.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 6 }, () => 'fulfilled'),
      'rejected',
    ]);
    expect(results[6]).toMatchObject({ reason: { code: 'database_unavailable' } });
    const later = group.add(8);
    await openAll();
    expect(await later).toBe(80);
  });
});
