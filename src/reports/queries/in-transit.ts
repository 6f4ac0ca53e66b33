/**
 * Which open writes a balance already shows: a named subset of them that makes up the difference.
 * Pure.
 */

/** Open writes of one wallet that are told apart at most: 2^12 subsets. */
export const OPEN_MAX = 12;

/**
 * The first subset, as the names of its members, whose effects sum to the target; undefined when
 * none does. Members are taken in the order of their names, so the answer is always the same.
 * @param effects at most `OPEN_MAX` effects by name
 */
export function subsetWithSum(
  effects: ReadonlyMap<string, bigint>,
  target: bigint,
): string[] | undefined {
  const reached = new Map<bigint, string[]>([[0n, []]]);
  for (const [name, effect] of [...effects].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const [sum, names] of [...reached]) {
      const next = sum + effect;
      if (!reached.has(next)) reached.set(next, [...names, name]);
    }
  }
  return reached.get(target);
}
