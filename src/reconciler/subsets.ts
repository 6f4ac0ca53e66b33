/**
 * Which of several amounts make up a difference. Pure enumeration, for at most `OPEN_MAX` amounts; more
 * than that is not decided but called inconclusive by the callers.
 */

/** Open operations that are told apart at most: 2^8 subsets. */
export const OPEN_MAX = 8;

/**
 * Every subset, as a list of indexes, whose vectors sum to the target in all dimensions, the empty one
 * included when the target is zero. Stops after `limit`, since two explanations are as bad as ten.
 * @param vectors one vector per item, all as long as `target`
 */
export function subsetsWithSum(
  vectors: readonly (readonly bigint[])[],
  target: readonly bigint[],
  limit: number,
): number[][] {
  const found: number[][] = [];
  for (let mask = 0; mask < 1 << vectors.length && found.length < limit; mask++) {
    const left = [...target];
    vectors.forEach((vector, i) => {
      if (mask & (1 << i)) {
        for (const [d, amount] of vector.entries()) left[d] = (left[d] ?? 0n) - amount;
      }
    });
    if (left.every((rest) => rest === 0n)) {
      found.push(vectors.flatMap((_, i) => (mask & (1 << i) ? [i] : [])));
    }
  }
  return found;
}
