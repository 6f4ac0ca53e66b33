/**
 * The architecture as a test: direction of imports, doors, places of SQL, one writer per table,
 * sizes, headers, banned words, no dead file and no ring. Every check is itself tried on a clean
 * tree, and on trees with exactly one planted fault.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CLEAN } from './tidy/clean-tree.ts';
import { planted } from './tidy/fault.ts';
import { FAULTS } from './tidy/faults.ts';
import { deadFiles, rings } from './tidy/graph.ts';
import { strayLibraries, wrongDirections, wrongDoors } from './tidy/imports.ts';
import { emptyNames, headless, oversized, unparsed } from './tidy/shape.ts';
import { type Check, treeOf } from './tidy/source.ts';
import { straySql } from './tidy/sql.ts';
import { bannedInSrc, bannedInTests } from './tidy/words.ts';
import { strayWrites } from './tidy/writers.ts';

/** What must hold, by the check that finds where it does not. */
const CHECKS: Record<keyof typeof FAULTS, { title: string; find: Check }> = {
  direction: { title: 'Folders import only what their row allows', find: wrongDirections },
  deps: { title: 'Across folders only doors, tables and events are imported', find: wrongDoors },
  libraries: { title: 'Each library has its one importer', find: strayLibraries },
  sql: { title: 'SQL lives in stores', find: straySql },
  writers: { title: 'Each table has one writing folder', find: strayWrites },
  parse: { title: 'Every file parses', find: unparsed },
  sizes: { title: 'Files, functions and lines keep their limits', find: oversized },
  headers: { title: 'Every file of src says why it exists', find: headless },
  names: { title: 'No file or folder has a name that says nothing', find: emptyNames },
  words: { title: 'Time, randomness, network and environment come in', find: bannedInSrc },
  tests: { title: 'Every test runs, on real parts, without sleeps', find: bannedInTests },
  dead: { title: 'Every file of src is reached from an entry', find: deadFiles },
  rings: { title: 'No two files need each other', find: rings },
};
const ALL = Object.values(CHECKS);
const REAL = treeOf(fileURLToPath(new URL('..', import.meta.url)));

describe('The repository is tidy', () => {
  test.each(ALL)('$title', ({ find }) => {
    expect(find(REAL).join('\n')).toBe('');
  });
});

describe('Tidy sees what it should, and nothing else', () => {
  test('A clean tree has no findings', () => {
    expect(ALL.flatMap(({ find }) => find(CLEAN))).toEqual([]);
  });

  for (const [name, faults] of Object.entries(FAULTS))
    test.each(faults)(`The check of ${name} finds $fault`, (fault) => {
      const { tree, expected } = planted(fault);
      expect(ALL.flatMap(({ find }) => find(tree))).toEqual(expected);
    });
});
