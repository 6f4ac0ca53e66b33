/**
 * What a planted fault is: one change to the clean tree, and the one finding that it must cause.
 * The whole of tidy runs on it, so that no other check answers for it or raises a false alarm.
 */
import { CLEAN } from './clean-tree.ts';
import type { Tree } from './source.ts';

export interface Fault {
  fault: string;
  path: string;
  /** Text put at the end of the file; for a file that the clean tree lacks, its whole text. */
  add: string;
  /** What the finding says after `path:line: `. */
  finds: string;
  /** The line of the finding, counted from the first added one; 0 unless told. */
  below?: number;
  /** The clean tree's own text of the file is dropped first. */
  instead?: true;
  /** Further files, and where the finding then is. */
  also?: Record<string, string>;
  at?: string;
}

/** The tree with one fault, and what must be found in it. */
export function planted(fault: Fault): { tree: Tree; expected: string[] } {
  const { path, add, finds, below = 0, instead, also = {}, at } = fault;
  const before = instead ? '' : (CLEAN.get(path) ?? '');
  const place = at ?? `${path}:${before.split('\n').length + below}`;
  const tree = new Map([...CLEAN, [path, before + add], ...Object.entries(also)]);
  return { tree, expected: [`${place}: ${finds}`] };
}

export const RULES = 'src/journal/rules.ts';
export const STORE = 'src/journal/store.ts';
export const TEST = 'test/journal/journal.test.ts';
