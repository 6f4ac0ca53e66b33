/** The picture of the parts: which folder of src imports which, and whose tables its SQL reads. */
import { STAGES } from './imports.ts';
import { folderOf, srcOf, type Tree } from './source.ts';
import { readsAcross } from './tables.ts';

/** Imported by nearly all: their lines would hide the others. */
const FLOOR = ['kernel', 'resources', 'db', 'keys'];

/** A flowchart of Mermaid. An import that others imply is left out. */
export function pictureOf(tree: Tree): string {
  const imports = new Map<string, Set<string>>();
  for (const { folder, imports: all } of srcOf(tree)) {
    const into = imports.get(folder) ?? new Set();
    for (const { target, kind } of all) {
      const other = folderOf(target);
      if (other && other !== folder && kind !== 'path' && !FLOOR.includes(other)) into.add(other);
    }
    if (![...FLOOR, 'main'].includes(folder)) imports.set(folder, into);
  }
  const reads = new Set(
    readsAcross(tree)
      .filter(({ owner }) => !FLOOR.includes(owner))
      .map(({ owner, folder }) => `  ${owner} -.-> ${folder}`),
  );
  const group = (title: string, folders: readonly string[]) => [
    `  subgraph "${title}"`,
    ...folders.map((folder) => `    ${folder}`),
    '  end',
  ];
  const others = [...imports.keys()].filter((folder) => !STAGES.includes(folder));
  return [
    'flowchart TB',
    ...group('for apps, people and machines', others),
    ...group('stages', STAGES),
    ...[...imports].flatMap(([from, into]) =>
      [...into].filter((to) => !isImplied(imports, from, to)).map((to) => `  ${from} --> ${to}`),
    ),
    ...reads,
  ].join('\n');
}

/** Whether a folder reaches another one also without importing it itself. */
function isImplied(imports: Map<string, Set<string>>, from: string, to: string): boolean {
  const reached = new Set([...(imports.get(from) ?? [])].filter((one) => one !== to));
  for (const one of reached) for (const next of imports.get(one) ?? []) reached.add(next);
  return reached.has(to);
}
