/** The graph of imports: every file of src is reached from an entry, and there are no cycles. */
import { sourcesOf, srcOf, type Tree } from './source.ts';

/** What people, Node and drizzle-kit start. */
const ENTRIES = [
  /^src\/main\.ts$/,
  /^src\/cli\/tallyhook\.ts$/,
  /^src\/console\/web\/app\.ts$/,
  /^drizzle\.config\.ts$/,
  /^src\/[^/]+\/tables\.ts$/,
];

/** Files of src that no entry reaches, types and paths of workers included. */
export function deadFiles(tree: Tree): string[] {
  const sources = new Map(sourcesOf(tree).map((source) => [source.path, source]));
  const reached = new Set([...sources.keys()].filter((p) => ENTRIES.some((e) => e.test(p))));
  for (const path of reached)
    for (const { target } of sources.get(path)?.imports ?? [])
      if (target && sources.has(target)) reached.add(target);
  return srcOf(tree)
    .filter(({ path }) => !reached.has(path))
    .map(({ at }) => at(0, 'no entry reaches it, use it or delete it'));
}

/**
 * Cycles of imports, those of types included; each is reported once, at its first file, by its
 * shortest path. A path that a process is started by is no import.
 */
export function cycles(tree: Tree): string[] {
  const sources = srcOf(tree);
  const next = new Map(
    sources.map(({ path, imports }) => [path, imports.filter(({ kind }) => kind !== 'path')]),
  );
  const reported = new Set<string>();
  return sources.flatMap(({ path, at }) => {
    const cycle = shortestCycle(path, (p) => (next.get(p) ?? []).flatMap((i) => i.target ?? []));
    const name = cycle?.toSorted().join(' ');
    if (!cycle || !name || reported.has(name)) return [];
    reported.add(name);
    const first = next.get(path)?.find(({ target }) => target === (cycle[1] ?? path));
    const route = [...cycle, path].map((p) => p.replace(/^src\//, '')).join(' → ');
    return [at(first?.offset ?? 0, `imports itself by ${route}, use an argument or a third file`)];
  });
}

/** The files of the shortest path from a file back to itself, that file first. */
function shortestCycle(start: string, next: (path: string) => string[]): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const path of queue)
    for (const target of next(path)) {
      if (target === start) return pathTo(path, cameFrom);
      if (cameFrom.has(target)) continue;
      cameFrom.set(target, path);
      queue.push(target);
    }
  return undefined;
}

function pathTo(end: string, cameFrom: Map<string, string>): string[] {
  const files = [end];
  for (let path = cameFrom.get(end); path !== undefined; path = cameFrom.get(path))
    files.unshift(path);
  return files;
}
