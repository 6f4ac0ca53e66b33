/** The graph of imports: every file of src is reached from an entry, and no two need each other. */
import { roomsOf, sourcesOf, type Tree } from './source.ts';

/** Where reading starts: what people, Node and drizzle-kit call. */
const ENTRIES = [
  /^src\/main\.ts$/,
  /^src\/cli\/tallyhook\.ts$/,
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
  return roomsOf(tree)
    .filter(({ path }) => !reached.has(path))
    .map(({ at }) => at(0, 'no entry reaches it, use it or delete it'));
}

/** Rings of imports by value; each is told once, at its first file, by its shortest way round. */
export function rings(tree: Tree): string[] {
  const sources = roomsOf(tree);
  const next = new Map(
    sources.map(({ path, imports }) => [path, imports.filter(({ kind }) => kind === 'value')]),
  );
  const told = new Set<string>();
  return sources.flatMap(({ path, at }) => {
    const ring = shortestRing(path, (p) => (next.get(p) ?? []).flatMap((i) => i.target ?? []));
    const name = ring?.toSorted().join(' ');
    if (!ring || !name || told.has(name)) return [];
    told.add(name);
    const first = next.get(path)?.find(({ target }) => target === (ring[1] ?? path));
    const way = [...ring, path].map((p) => p.replace(/^src\//, '')).join(' → ');
    return [at(first?.offset ?? 0, `imports itself by ${way}, use an argument or a third file`)];
  });
}

/** The files of the shortest way from a file back to it, that file first. */
function shortestRing(start: string, next: (path: string) => string[]): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const path of queue)
    for (const target of next(path)) {
      if (target === start) return wayTo(path, cameFrom);
      if (cameFrom.has(target)) continue;
      cameFrom.set(target, path);
      queue.push(target);
    }
  return undefined;
}

function wayTo(end: string, cameFrom: Map<string, string>): string[] {
  const way = [end];
  for (let path = cameFrom.get(end); path !== undefined; path = cameFrom.get(path))
    way.unshift(path);
  return way;
}
