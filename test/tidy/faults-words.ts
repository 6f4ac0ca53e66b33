/**
 * Planted faults of words: each banned word in each of its spellings, in src and in tests.
 */
import { type Fault, RULES, TEST } from './fault.ts';

/** In a rule of the journal unless told; the line is the added one. */
const inSrc = (word: string, use: string, spellings: string[], path = RULES): Fault[] =>
  spellings.map((add) => ({
    fault: add,
    path,
    add,
    finds: `${word} is banned here, use ${use}`,
  }));

export const words: Fault[] = [
  inSrc('process.env', 'the Config of daemon/config.ts', [
    'export const port = process.env.PORT;',
    'export const { env } = process;',
  ]),
  inSrc('process.env', 'the Config of daemon/config.ts', ['start(process.env);'], 'src/main.ts'),
  inSrc('the clock of the machine', 'a Clock argument, or monotonicMs', [
    'export const now = Date.now();',
    'export const now = Date.now;',
    'export const now = new Date();',
    'export const now = +new Date;',
    'export const now = Date();',
    'export const now = performance.now();',
    'export const now = process.hrtime();',
  ]),
  inSrc('randomness', 'a Chance or Ids argument', [
    'export const draw = Math.random();',
    `import { randomBytes } from 'node:crypto';`,
    'export const draw = crypto.randomUUID();',
    'export const draw = crypto.getRandomValues(bytes);',
  ]),
  inSrc('a timer', 'pause or after of kernel/clock.ts', [
    'setTimeout(act, 5);',
    'globalThis.setInterval(act, 5);',
    'setImmediate(act);',
    'export const timer = { set: setTimeout };',
  ]),
  inSrc('fetch', 'undici, or an argument with its own name', [
    `await fetch('https://example.test');`,
    `await globalThis.fetch('https://example.test');`,
  ]),
  inSrc('console', 'the log, or kernel/terminal.ts', [`console.error('x');`, 'console?.log(1);']),
  inSrc('process.exit', 'an error that main.ts turns into an exit code', ['process.exit(1);']),
  inSrc('a switch for tests', 'an argument', [
    'export const __test__ = 1;',
    `export const test = env.NODE_ENV === 'test';`,
  ]),
  inSrc('a silenced compiler', 'types that hold', [
    '// @ts-ignore',
    '/* @ts-expect-error: no. */',
    '// @ts-nocheck',
  ]),
  inSrc('sql.reserve', 'a transaction', ['const held = await sql.reserve();']),
  inSrc(
    'a session lock',
    'pg_advisory_xact_lock, or a lease of db/leases.ts',
    ['sql`select pg_advisory_lock(1)`;', 'sql`select pg_try_advisory_lock(1)`;'],
    'src/journal/store.ts',
  ),
  inSrc(
    'select *',
    'the names of the columns',
    [
      'sql`select * from tallyhook.operations`;',
      'sql`select distinct o.* from tallyhook.operations o`;',
      'sql`update tallyhook.operations set id = 1 returning *`;',
    ],
    'src/journal/store.ts',
  ),
  inSrc('unfinished work', 'the finished thing, or the README', [
    '// TODO: later',
    `export const why = 'FIXME';`,
  ]),
  inSrc('the message of an error', 'its code', [
    `if (error.message.includes('foreign key')) retry();`,
    `if (error.message === 'gone') retry();`,
    'if (error.message == GONE) retry();',
    'if (GONE === error.message) retry();',
    `if ('gone' !== error.message) retry();`,
    'if (error.message.match(/gone/)) retry();',
    'if (/gone/.test(error.message)) retry();',
  ]),
  inSrc('any', 'unknown, and parse it', ['export const x = (y: any[]) => y;']),
  inSrc('!', 'must of kernel/assert.ts', ['export const x = y!.z;']),
  inSrc('!', 'a value from the start', ['let x!: number;', 'class X { y!: number }']),
  inSrc('as unknown as', 'a type that the edge parsed', [
    'export const x = y as unknown as string;',
    'export const x = (y as unknown) as string;',
  ]),
].flat();

const inTests = (word: string, use: string, spellings: string[]): Fault[] =>
  inSrc(word, use, spellings, TEST);

export const tests: Fault[] = [
  inTests('a test that does not run', 'a test that runs, or none', [
    `test.skip('x', () => {});`,
    `describe.only('x', () => {});`,
    `it.todo('x');`,
    `test.concurrent.skip('x', () => {});`,
    'const maybe = docker ? test : test.skip;',
    'context.skip();',
  ]),
  inTests('a mocked module', 'the real part, or an argument', [`vi.mock('../../src/x.ts');`]),
  inTests('a sleep', 'what is waited for, by a deadline of test/harness', [
    'await new Promise((resolve) => setTimeout(resolve, 50));',
    'await new Promise<void>((ok) => setTimeout(ok, 50));',
    'await new Promise((ok) => { setTimeout(ok, 50); });',
    'await pause(50);',
  ]),
  inTests('a sleep of node:timers', 'what is waited for, by a deadline of test/harness', [
    `import { setTimeout as wait } from 'node:timers/promises';`,
  ]),
  inTests('unfinished work', 'the finished thing', ['// TODO: later']),
].flat();
