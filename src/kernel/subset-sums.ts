/** Subsets of amounts: which have a given sum, and which differences their sums have. Pure. */

/**
 * The difference of the sums of any two disjoint subsets; 3^n differences for n amounts, repeated
 * ones included.
 */
export function differencesOfSums(amounts: readonly bigint[]): bigint[] {
  let sums = [0n];
  for (const amount of amounts) sums = sums.flatMap((sum) => [sum, sum + amount, sum - amount]);
  return sums;
}

/**
 * Bound of the search. It covers all subsets of 14 amounts, and of many more where further
 * dimensions tell them apart.
 */
const STEPS_MAX = 32_768;

interface Item {
  index: number;
  vector: readonly bigint[];
}

/**
 * Up to `limit` subsets, as ascending lists of indexes, whose vectors sum to the target in all
 * dimensions; the empty one first when the target is zero. Branches that cannot reach the target
 * are cut off.
 * @param vectors one vector per item, all as long as `target`
 * @returns `too_many` when the search reached its bound
 */
export function subsetsWithSum(
  vectors: readonly (readonly bigint[])[],
  target: readonly bigint[],
  limit: number,
): number[][] | 'too_many' {
  const items = inOrder(vectors, target.length);
  const reach = reachOf(items, target.length);
  const found: number[][] = [];
  const chosen: number[] = [];
  let steps = 0;

  /** False when the search reached its bound. */
  function search(depth: number, left: readonly bigint[]): boolean {
    if (++steps > STEPS_MAX) return false;
    if (!within(left, reach[depth])) return true;
    const item = items[depth];
    if (!item) {
      found.push(chosen.toSorted((a, b) => a - b));
      return true;
    }
    if (!search(depth + 1, left)) return false;
    if (found.length >= limit) return true;
    chosen.push(item.index);
    const rest = left.map((amount, d) => amount - (item.vector[d] ?? 0n));
    const finished = search(depth + 1, rest);
    chosen.pop();
    return finished;
  }

  return search(0, target) ? found.slice(0, limit) : 'too_many';
}

/** Orders the items so that the dimension with the fewest items left is decided first. */
function inOrder(vectors: readonly (readonly bigint[])[], dimensions: number): Item[] {
  let left: Item[] = vectors.map((vector, index) => ({ index, vector }));
  const ordered: Item[] = [];
  const touches = (item: Item, d: number) => (item.vector[d] ?? 0n) !== 0n;
  const open = new Set(Array.from({ length: dimensions }, (_, d) => d));
  while (open.size > 0) {
    let fewest = { d: -1, items: Number.POSITIVE_INFINITY };
    for (const d of open) {
      const items = left.filter((item) => touches(item, d)).length;
      if (items < fewest.items) fewest = { d, items };
    }
    open.delete(fewest.d);
    ordered.push(...left.filter((item) => touches(item, fewest.d)));
    left = left.filter((item) => !touches(item, fewest.d));
  }
  return [...ordered, ...left];
}

/** By depth and dimension: the least and the greatest sum of the items from there on. */
function reachOf(items: readonly Item[], dimensions: number): [bigint, bigint][][] {
  const zeros = (): [bigint, bigint][] => Array.from({ length: dimensions }, () => [0n, 0n]);
  const reach = [zeros()];
  for (const { vector } of items.toReversed()) {
    const before = reach[0] ?? zeros();
    reach.unshift(
      before.map(([least, most], d) => {
        const amount = vector[d] ?? 0n;
        return amount < 0n ? [least + amount, most] : [least, most + amount];
      }),
    );
  }
  return reach;
}

function within(left: readonly bigint[], reach: [bigint, bigint][] | undefined): boolean {
  return left.every((rest, d) => {
    const [least, most] = reach?.[d] ?? [0n, 0n];
    return least <= rest && rest <= most;
  });
}
