/** The planted faults: for each rule a tree of one or two files, and the one finding in it. */

interface Fault {
  fault: string;
  files: Record<string, string>;
  finds: string;
}

const RULE = 'src/operations/rule.ts';
const STORE = 'src/operations/store.ts';
const TEST = 'test/operations/rule.test.ts';

/** A fault whose tree is one file and whose finding is in its first line. */
const one = (fault: string, path: string, text: string, finds: string): Fault => ({
  fault,
  files: { [path]: text },
  finds: `${path}:1: ${finds}`,
});
const rows = (count: number, row: string) => `${row}\n`.repeat(count);
const tables = (folder: string, name: string) => ({
  [`src/${folder}/tables.ts`]: `export const ${name} = tallyhook.table('${name}', {});`,
});

const parse = [
  one('a syntax error', RULE, 'export const = 1;', 'Unexpected token, use TypeScript that parses'),
];

const row = 'use an argument or its row: kernel db outbox upstream/types';
const hidden = 'imports a file by another name, use its relative path';
const direction = [
  one(
    'a later stage',
    RULE,
    "import type { Webhooks } from '../webhooks/webhooks.ts';",
    `operations imports webhooks, ${row}`,
  ),
  one(
    'a type query of a later stage',
    RULE,
    "export type W = typeof import('../webhooks/webhooks.ts').deliver;",
    `operations imports webhooks, ${row}`,
  ),
  one(
    'a value where only types are open',
    RULE,
    "export { openUpstream } from '../upstream/upstream.ts';",
    'imports upstream as a value, use import type',
  ),
  one('a computed name', RULE, 'export const late = (n: string) => import(n);', hidden),
  one(
    'a test',
    RULE,
    "import '../../test/harness/until.ts';",
    'src imports a test, use a file of src',
  ),
  one(
    'a folder without a row',
    'src/detector/rule.ts',
    '',
    'detector has no row in MAY_IMPORT, use a folder that has one',
  ),
];

const modules = [
  one(
    'a file of another stage',
    'src/ledger/ledger.ts',
    "import type { Rule } from '../operations/rule.ts';",
    'reaches into operations/rule.ts, use operations/operations.ts or operations/tables.ts',
  ),
  one(
    'the inside of the embedded server',
    'src/db/connect.ts',
    "import { start } from './embedded/process.ts';",
    'reaches into db/embedded/process.ts, use db/embedded/embedded.ts',
  ),
  one(
    'a public module where only tables are open',
    'src/reports/reports.ts',
    "import { makeObserver } from '../observer/observer.ts';",
    'reaches into observer/observer.ts, use observer/tables.ts',
  ),
  one(
    'tables where only the public module is open',
    'src/api/api.ts',
    "import { operations } from '../operations/tables.ts';",
    'reaches into operations/tables.ts, use operations/operations.ts',
  ),
];

const libraries = [
  one(
    'another importer',
    RULE,
    "import { pino } from 'pino';",
    'imports pino, use kernel/telemetry/log.ts',
  ),
];

/** A write in a file beside tables of its own and of keys. */
const write = (fault: string, text: string, finds: string, path = STORE): Fault => ({
  fault,
  files: { ...tables('operations', 'operations'), ...tables('keys', 'keys'), [path]: text },
  finds: `${path}:1: ${finds}`,
});
const theirs = 'writes keys, a table of keys, use keys/keys.ts';
const writers = [
  write("another folder's table", 'sql`insert into tallyhook.keys (id) values (1)`;', theirs),
  write(
    "another folder's imported table",
    "import { keys as k } from '../keys/tables.ts'; tx.update(k);",
    theirs,
  ),
  write(
    'the second table of a truncate',
    "'truncate tallyhook.operations, tallyhook.keys';",
    theirs,
  ),
  write(
    'a write without the schema',
    'sql`with x as (select 1) update keys k set id = 1`;',
    theirs,
  ),
  write(
    'a table without an owner',
    'sql`update tallyhook.loose set id = 1`;',
    'writes loose, which has no owner, use a table that a tables.ts defines',
  ),
  write(
    'a computed name',
    `sql\`insert into tallyhook.\${sql.raw(name)}\`;`,
    'writes a table whose name is computed, use its own name',
  ),
  write(
    'a table defined outside tables.ts',
    "export const loose = tallyhook.table('loose', {});",
    'defines loose, use operations/tables.ts',
  ),
  write(
    'a table defined twice',
    "export const again = tallyhook.table('keys', {});",
    'defines keys again, use the one of keys',
    'src/ledger/tables.ts',
  ),
];

const readers: Fault[] = [
  {
    fault: 'a read that is not declared',
    files: {
      ...tables('keys', 'keys'),
      'src/outbox/store.ts': 'sql`select 1 from tallyhook.keys`',
    },
    finds: 'src/outbox/store.ts:1: reads keys of keys, use keys/keys.ts',
  },
  {
    fault: 'a declared read that is gone',
    files: {
      ...tables('outbox', 'events'),
      'src/webhooks/store.ts': 'sql`select 1`;',
    },
    finds: 'MAY_READ lists webhooks events, which no SQL reads',
  },
];

const sizes = [
  one(
    'a function of 101 lines',
    RULE,
    `export function long() {\n${rows(99, '// .')}}`,
    'function of 101 lines, use 100 at most',
  ),
  one('a long line', RULE, `// ${'x'.repeat(98)}`, 'line of 101 columns, use 100 at most'),
];

const spread = 'a literal is spread, write its members out';
const spreads = [
  one('a spread list', RULE, "export const NAMES = [...['a', 'b'], 'c'];", spread),
  one('a spread object', RULE, 'export const BOTH = { ...{ a, b }, c };', spread),
];

const folders: Fault[] = [
  {
    fault: 'a folder of 17 names',
    files: Object.fromEntries(
      Array.from({ length: 17 }, (_, n) => [`src/operations/queue/rule-${n}.ts`, '']),
    ),
    finds: 'src/operations/queue has 17 names, use sub-folders; 16 at most',
  },
];

const header = 'no header, use /** what it is responsible for */';
const headers = [one('a plain comment', RULE, '/* Rules. */', header)];

const empty = 'is named helpers, use the name of what it is about';
const names = [one('a file of helpers', 'test/operations/helpers.ts', '', empty)];

const banned = (path: string, texts: Record<string, [what: string, use: string]>) =>
  Object.entries(texts).map(([text, [what, use]]) =>
    one(text, path, text, `${what} is banned here, use ${use}`),
  );
const code = banned(RULE, {
  'start(process.env);': ['process.env', 'the Config of daemon/config/'],
  'const now = Date.now();': ['the clock of the machine', 'a Clock argument, or monotonicMs'],
  'Math.random();': ['randomness', 'a Random or Ids argument'],
  'setTimeout(act, 5);': ['a timer', 'pause or after of kernel/clock.ts'],
  "fetch('https://example.test');": ['fetch', 'undici, or an argument with its own name'],
  'console.error(1);': ['console', 'the log, or kernel/telemetry/log.ts'],
  'process.exit(1);': ['process.exit', 'an error that main.ts turns into an exit code'],
  "readdir('/proc');": ['the operating system', 'the platform of db/platform.ts'],
  'const __test__ = 1;': ['a switch for tests', 'an argument'],
  '// @ts-ignore': ['a silenced compiler', 'types that hold'],
  'await sql.reserve();': ['sql.reserve', 'a transaction'],
  'sql`select pg_advisory_lock(1)`;': [
    'a session lock',
    'pg_advisory_xact_lock, or a lease of db/leases.ts',
  ],
  'sql`select * from tallyhook.operations`;': ['select *', 'the names of the columns'],
  '// TODO: later': ['unfinished work', 'the finished thing, or the README'],
  "error.message.includes('foreign key');": ['the message of an error', 'its code'],
  'const x = (y: any) => y;': ['any', 'unknown, and parse it'],
  'const x = y!.z;': ['!', 'must of kernel/errors.ts'],
  'let x!: number;': ['!', 'a value from the start'],
  'const x = y as unknown as string;': ['as unknown as', 'a type that the boundary parsed'],
});

const RUNS: [string, string] = ['a test that does not run', 'a test that runs, or none'];
const SLEEP: [string, string] = ['a sleep', 'until of test/harness'];
const tests = banned(TEST, {
  "it.skip('x', () => {});": RUNS,
  'const maybe = docker ? it : it.skip;': RUNS,
  "test('Is fast', () => {});": ['a test by another name', 'it, with a title that is a sentence'],
  "vi.mock('../../src/x.ts');": ['a mocked module', 'the real module, or an argument'],
  'await new Promise((done) => setTimeout(done, 50));': SLEEP,
  'await pause(50);': SLEEP,
  "import { setTimeout as wait } from 'node:timers/promises';": [
    'a sleep of node:timers',
    'until of test/harness',
  ],
  '// TODO: later': ['unfinished work', 'the finished thing'],
});

const dead = [
  one('a file without an importer', RULE, '', 'no entry reaches it, use it or delete it'),
];

const cycles: Fault[] = [
  {
    fault: 'two files',
    files: {
      'src/ledger/batch.ts': "import './plan.ts';",
      'src/ledger/plan.ts': "import './batch.ts';",
    },
    finds:
      'src/ledger/batch.ts:1: imports itself by ' +
      'ledger/batch.ts → ledger/plan.ts → ledger/batch.ts, use an argument or a third file',
  },
  {
    fault: 'a type inside a folder',
    files: {
      'src/ledger/plan/batch.ts': "import { draft } from './draft.ts';",
      'src/ledger/plan/draft.ts': "import type { Batch } from './batch.ts';",
    },
    finds:
      'src/ledger/plan/batch.ts:1: imports itself by ' +
      'ledger/plan/batch.ts → ledger/plan/draft.ts → ledger/plan/batch.ts, ' +
      'use an argument or a third file',
  },
];

export const FAULTS = {
  parse,
  direction,
  modules,
  libraries,
  writers,
  readers,
  sizes,
  spreads,
  folders,
  headers,
  names,
  code,
  tests,
  dead,
  cycles,
};
