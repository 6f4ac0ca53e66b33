/**
 * The shape of files and folders: each file parses and opens with a header, functions and lines
 * keep their limits, and no folder holds too many names. Split by responsibility, not by size.
 */
import type { Node } from 'oxc-parser';
import { type Source, sourcesOf, srcOf, type Tree } from './source.ts';

const FUNCTION_LINES_MAX = 100;
const COLUMNS_MAX = 100;
const NAMES_MAX = 16;

/** Names that do not tell what is inside. */
const EMPTY_NAMES = /^(?:utils?|helpers?|commons?|shared|libs?|misc)$/;

/** A file that does not parse would pass every other check. */
export function unparsed(tree: Tree): string[] {
  return sourcesOf(tree).flatMap(({ errors, at }) =>
    errors.map(({ message, offset }) => at(offset, `${message}, use TypeScript that parses`)),
  );
}

/** Functions and lines beyond their limits. */
export function oversized(tree: Tree): string[] {
  return sourcesOf(tree).flatMap((s) => [...longFunctions(s), ...longLines(s)]);
}

/** Members of a literal that stand in a literal of their own, which only defeats the formatter. */
export function literalSpreads(tree: Tree): string[] {
  return sourcesOf(tree).flatMap((source) =>
    source
      .all('SpreadElement')
      .filter(({ argument: { type } }) => /^(Array|Object)Expression$/.test(type))
      .map(({ start }) => source.at(start, 'a literal is spread, write its members out')),
  );
}

function longFunctions(source: Source): string[] {
  return [
    ...source.all('FunctionDeclaration'),
    ...source.all('FunctionExpression'),
    ...source.all('ArrowFunctionExpression'),
  ].flatMap((node) => {
    const lines = source.lineAt(node.end) - source.lineAt(node.start) + 1;
    if (lines <= FUNCTION_LINES_MAX || isListOfTests(node.parent)) return [];
    const what = `function of ${lines} lines`;
    return [source.at(node.start, `${what}, use ${FUNCTION_LINES_MAX} at most`)];
  });
}

/** The function given to `describe` is a list of tests, not a piece of work. */
function isListOfTests(parent: Node | undefined): boolean {
  if (parent?.type !== 'CallExpression') return false;
  let callee: Node = parent.callee;
  while (callee.type === 'MemberExpression' || callee.type === 'CallExpression')
    callee = callee.type === 'MemberExpression' ? callee.object : callee.callee;
  return callee.type === 'Identifier' && callee.name === 'describe';
}

function longLines({ path, text, views }: Source): string[] {
  let offset = 0;
  return text.split('\n').flatMap((line, index) => {
    const comment = views.comments.slice(offset, offset + line.length);
    offset += line.length + 1;
    // A character outside the basic plane counts once, as an editor shows it.
    const columns = [...line].length;
    if (columns <= COLUMNS_MAX || /https?:\/\//.test(comment) || isTitle(path, line)) return [];
    return [`${path}:${index + 1}: line of ${columns} columns, use ${COLUMNS_MAX} at most`];
  });
}

/** The title of a test is a whole sentence on one line of any length. */
function isTitle(path: string, line: string): boolean {
  const title = /^\s*(?:(?:it|test|describe)\(|\[)?'[^']*',?(?: (?:async )?\(.*)?$/;
  return path.startsWith('test/') && title.test(line);
}

/** Files of src that do not open with a docstring. */
export function headless(tree: Tree): string[] {
  return srcOf(tree)
    .filter(({ text }) => !/^(?:#!.*\n)?\/\*\*(?:(?!\*\/)[\s\S])*\w/.test(text))
    .map(({ at }) => at(0, 'no header, use /** what it is responsible for */'));
}

/** Files and folders whose name says nothing. */
export function emptyNames(tree: Tree): string[] {
  return sourcesOf(tree).flatMap(({ path, at }) =>
    path
      .split('/')
      .map((part) => part.replace(/(?:\.test)?\.ts$/, ''))
      .filter((part) => EMPTY_NAMES.test(part))
      .map((part) => at(0, `is named ${part}, use the name of what it is about`)),
  );
}

/** Folders of src with more files and sub-folders than fit on a screen. */
export function crowded(tree: Tree): string[] {
  const names = new Map<string, Set<string>>();
  for (const { path } of srcOf(tree)) {
    const parts = path.split('/');
    for (let n = 1; n < parts.length; n++) {
      const folder = parts.slice(0, n).join('/');
      names.set(folder, (names.get(folder) ?? new Set()).add(parts[n] ?? ''));
    }
  }
  return [...names]
    .filter(([folder]) => folder !== 'src')
    .flatMap(([folder, { size }]) =>
      size > NAMES_MAX
        ? [`${folder} has ${size} names, use sub-folders; ${NAMES_MAX} at most`]
        : [],
    );
}
