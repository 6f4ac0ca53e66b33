/**
 * Planted faults of single files: whether they parse, their size, header and name.
 */
import { type Fault, RULES } from './fault.ts';

const rows = (count: number, row: string) => Array.from({ length: count }, () => row).join('\n');

export const parse: Fault[] = [
  {
    fault: 'a file that does not parse',
    path: 'src/journal/instants.ts',
    add: 'export const = 1;',
    finds: 'Unexpected token, use TypeScript that parses',
  },
];

export const sizes: Fault[] = [
  {
    fault: 'a file of 301 lines',
    path: 'src/journal/instants.ts',
    instead: true,
    add: `/** Long. */\n${rows(299, '// .')}\n// The end.\n`,
    below: 300,
    finds: 'file of 301 lines, use 300 at most',
  },
  {
    fault: 'a function of 71 lines',
    path: RULES,
    add: `export function long() {\n${rows(69, '  // .')}\n}`,
    finds: 'function of 71 lines, use 70 at most',
  },
  {
    fault: 'an arrow of 71 lines that is one template of SQL',
    path: 'src/journal/store.ts',
    add: `export const long = () => sql\`\n${rows(69, '  id,')}\n\`;`,
    finds: 'function of 71 lines, use 70 at most',
  },
  {
    fault: 'a method of 71 lines',
    path: RULES,
    add: `export const long = { run() {\n${rows(69, '  // .')}\n} };`,
    finds: 'function of 71 lines, use 70 at most',
  },
  {
    fault: 'a test of 71 lines in a list of tests of any length',
    path: 'test/journal/journal.test.ts',
    add: `describe('all', () => {\n  test('x', () => {\n${rows(69, '    // .')}\n  });\n});`,
    below: 1,
    finds: 'function of 71 lines, use 70 at most',
  },
  {
    fault: 'a line of 101 columns',
    path: RULES,
    add: `// ${'x'.repeat(98)}`,
    finds: 'line of 101 columns, use 100 at most',
  },
  {
    fault: 'a long line whose URL is not in a comment',
    path: RULES,
    add: `export const where = 'https://example.test/${'x'.repeat(61)}';`,
    finds: 'line of 106 columns, use 100 at most',
  },
];

export const headers: Fault[] = [
  { fault: 'a file without a header', add: 'export const x = 1; /** Late. */' },
  { fault: 'a header that is a plain comment', add: '/* Rules. */\nexport const x = 1;' },
  { fault: 'a header that says nothing', add: '/** */\nexport const x = 1; /** Late. */' },
].map(({ fault, add }) => ({
  fault,
  path: 'src/kernel/json.ts',
  add: `${add}\nexport const exact = 1;`,
  instead: true as const,
  finds: 'no header, use /** why it exists, what it promises */',
}));

export const names: Fault[] = ['utils', 'helper', 'common', 'shared', 'lib', 'misc'].map(
  (name) => ({
    fault: `a file named ${name}`,
    path: `test/journal/${name}.ts`,
    add: '/** Said nowhere. */',
    finds: `is named ${name}, use the name of what it is about`,
  }),
);
