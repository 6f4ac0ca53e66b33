/**
 * The architecture as a test: imports, public modules, writers and readers of
 * tables, sizes, names, banned code. Each rule also runs on a small tree with one planted fault.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bannedInSrc, bannedInTests } from './tidy/banned.ts';
import { FAULTS } from './tidy/faults.ts';
import { cycles, deadFiles } from './tidy/graph.ts';
import { pastPublicModules, strayLibraries, wrongDirections } from './tidy/imports.ts';
import { pictureOf } from './tidy/picture.ts';
import {
  crowded,
  emptyNames,
  headless,
  literalSpreads,
  oversized,
  unparsed,
} from './tidy/shape.ts';
import { type Check, treeOf } from './tidy/source.ts';
import { strayReads, strayWrites } from './tidy/tables.ts';

const CHECKS: Record<keyof typeof FAULTS, { title: string; find: Check }> = {
  parse: { title: 'Every file parses', find: unparsed },
  direction: { title: 'Folders import only what their row allows', find: wrongDirections },
  modules: {
    title: 'Across folders only public modules, tables and events are imported',
    find: pastPublicModules,
  },
  libraries: { title: 'Each library has its one importer', find: strayLibraries },
  writers: { title: 'Each table has one writing folder', find: strayWrites },
  readers: { title: 'SQL reads only declared tables of other folders', find: strayReads },
  sizes: { title: 'Functions and lines keep their limits', find: oversized },
  spreads: { title: 'No literal is spread into another', find: literalSpreads },
  folders: { title: 'No folder of src holds too many names', find: crowded },
  headers: { title: 'Every file of src has a header', find: headless },
  names: { title: 'File and folder names tell what is inside', find: emptyNames },
  code: { title: 'Time, randomness, network and environment are arguments', find: bannedInSrc },
  tests: { title: 'Every test runs, on real parts, without sleeps', find: bannedInTests },
  dead: { title: 'Every file of src is reached from an entry', find: deadFiles },
  cycles: { title: 'No imports form a cycle', find: cycles },
};
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const REAL = treeOf(ROOT);

describe('The repository is tidy', () => {
  it.each(Object.values(CHECKS))('$title', ({ find }) => {
    expect(find(REAL).join('\n')).toBe('');
  });
});

it('docs/architecture.md has the picture of the code', async () => {
  const path = join(ROOT, 'docs/architecture.md');
  const shown = readFileSync(path, 'utf8').replace(
    /(```mermaid\n)[\s\S]*?(\n```)/,
    (_, open, close) => open + pictureOf(REAL) + close,
  );
  await expect(shown).toMatchFileSnapshot(path);
});

describe('A planted fault is found', () => {
  for (const [name, { find }] of Object.entries(CHECKS))
    it.each(FAULTS[name as keyof typeof FAULTS])(`${name}: $fault`, ({ files, finds }) => {
      expect(find(new Map(Object.entries(files)))).toEqual([finds]);
    });
});
