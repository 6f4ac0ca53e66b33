/**
 * Banned words, each with its replacement. Time, randomness, the network and the environment come
 * in as arguments; what a machine can see is not left to good will.
 */
import type {
  BinaryExpression,
  CallExpression,
  NewExpression,
  PrivateInExpression,
  Span,
} from 'oxc-parser';
import { isNamed, methodOf, type Source, sourcesOf, type Tree } from './source.ts';

type View = 'code' | 'texts' | 'comments';

interface Word {
  word: string;
  /** Where it is looked for; `code` is what is neither text nor comment. */
  within: View[];
  patterns: RegExp[];
  /** Files, or folders ending in `/`, in which it is allowed. */
  except?: string[];
  use: string;
}

const CLOCK = ['src/kernel/clock.ts'];
const CHANCE = ['src/kernel/chance.ts'];
const CONFIG = ['src/daemon/config.ts'];

/** Words that src may not hold. */
const IN_SRC: Word[] = [
  {
    word: 'process.env',
    within: ['code'],
    patterns: [/\bprocess\??\.env\b/g, /=\s*process\s*;/g],
    except: [...CONFIG, 'src/cli/tallyhook.ts'],
    use: 'the Config of daemon/config.ts',
  },
  {
    word: 'the clock of the machine',
    within: ['code'],
    patterns: [
      /\b(?:Date\.now|performance\.now|hrtime|Temporal\.Now)\b/g,
      // Without an argument; with one it is only a conversion.
      /\bnew Date\b(?!\s*\(\s*[^\s)])|(?<!new )(?<![\w.])Date\(/g,
    ],
    except: CLOCK,
    use: 'a Clock argument, or monotonicMs',
  },
  {
    word: 'randomness',
    within: ['code'],
    patterns: [/\bMath\.random\b|\brandom(?:Bytes|UUID|Int|Fill|FillSync)\b|\bgetRandomValues\b/g],
    except: CHANCE,
    use: 'a Chance or Ids argument',
  },
  {
    word: 'a timer',
    within: ['code'],
    patterns: [/(?:(?<![\w.])|\bglobalThis\.)set(?:Timeout|Interval|Immediate)\b/g],
    except: CLOCK,
    use: 'pause or after of kernel/clock.ts',
  },
  {
    word: 'console',
    within: ['code'],
    patterns: [/(?:(?<![\w.])|\bglobalThis\.)console\s*\??\./g],
    except: ['src/kernel/terminal.ts'],
    use: 'the log, or kernel/terminal.ts',
  },
  {
    word: 'process.exit',
    within: ['code'],
    patterns: [/\bprocess\.exit\b/g],
    except: ['src/main.ts', 'src/cli/'],
    use: 'an error that main.ts turns into an exit code',
  },
  {
    word: 'a switch for tests',
    within: ['code', 'texts'],
    patterns: [/__test__|\bNODE_ENV\b/g],
    except: CONFIG,
    use: 'an argument',
  },
  {
    word: 'a silenced compiler',
    within: ['comments'],
    patterns: [/@ts-(?:ignore|expect-error|nocheck)\b/g],
    use: 'types that hold',
  },
  {
    word: 'sql.reserve',
    within: ['code'],
    patterns: [/\b(?:sql|client|pool|db|pg)\.reserve\b/g],
    use: 'a transaction',
  },
  {
    word: 'a session lock',
    within: ['texts'],
    patterns: [/\bpg_(?:try_)?advisory_(?:un)?lock(?:_shared|_all)?\b/gi],
    use: 'pg_advisory_xact_lock, or a lease of db/leases.ts',
  },
  {
    word: 'select *',
    within: ['texts'],
    // A recordset names its columns itself, in its `as x(…)`.
    patterns: [
      /\bselect(?:\s+(?:all|distinct))?\s+(?:\w+\.)?\*(?!\s+from\s+jsonb_to_recordset\b)/gi,
      /\breturning\s+(?:\w+\.)?\*/gi,
    ],
    use: 'the names of the columns',
  },
  {
    word: 'unfinished work',
    within: ['code', 'texts', 'comments'],
    patterns: [/\b(?:TODO|FIXME)\b/g],
    use: 'the finished thing, or the README',
  },
  {
    word: 'the message of an error',
    within: ['code'],
    patterns: [
      /\.message\s*\??\.(?:includes|match|startsWith|endsWith|indexOf|search)\b/g,
      /\.test\(\s*[\w.]+\.message\b/g,
    ],
    use: 'its code',
  },
];

/** Where a wait of a given length is allowed: behind a condition, or as the load of a bench. */
const MAY_WAIT = ['test/harness/', 'test/bench/'];
const INSTEAD_OF_SLEEP = 'what is waited for, by a deadline of test/harness';

/** Words that tests may not hold. */
const IN_TESTS: Word[] = [
  {
    word: 'a test that does not run',
    within: ['code'],
    patterns: [
      /\.(?:skip|only|todo)\b\s*(?:\(|\.each\b)/g,
      /\b(?:test|it|describe)\.(?:skip|only|todo)\b(?!\s*(?:\(|\.each\b))/g,
    ],
    use: 'a test that runs, or none',
  },
  {
    word: 'a mocked module',
    within: ['code'],
    patterns: [/\bvi\.(?:mock|doMock)\b/g],
    use: 'the real part, or an argument',
  },
  {
    word: 'a sleep',
    within: ['code'],
    patterns: [/\bawait (?:pause|sleep)\(/g],
    except: MAY_WAIT,
    use: INSTEAD_OF_SLEEP,
  },
  {
    word: 'a sleep of node:timers',
    within: ['texts'],
    patterns: [/\btimers\/promises\b/g],
    except: [...MAY_WAIT, 'test/tidy/'],
    use: INSTEAD_OF_SLEEP,
  },
  {
    word: 'unfinished work',
    within: ['comments'],
    patterns: [/\b(?:TODO|FIXME)\b/g],
    use: 'the finished thing',
  },
];

/** The folders that may write `as unknown as`; everybody else parses at the edge. */
const CAST_TWICE = ['src/kernel/', 'src/db/'];

/** Banned words in src, and types that hide what a value is. */
export function bannedInSrc(tree: Tree): string[] {
  return under(tree, 'src/').flatMap((source) => [
    ...found(source, IN_SRC),
    ...bannedNodes(source).map(([offset, word, use]) => source.at(offset, said(word, use))),
  ]);
}

/** Banned words in tests. */
export function bannedInTests(tree: Tree): string[] {
  return under(tree, 'test/').flatMap((source) => {
    const sleeps = isUnder(source.path, MAY_WAIT) ? [] : source.all('NewExpression');
    return [
      ...found(source, IN_TESTS),
      ...sleeps
        .filter((made) => isSleep(made, source))
        .map(({ start }) => source.at(start, said('a sleep', INSTEAD_OF_SLEEP))),
    ];
  });
}

function under(tree: Tree, folder: string): Source[] {
  return sourcesOf(tree).filter(({ path }) => path.startsWith(folder));
}

function found({ path, views, at }: Source, words: Word[]): string[] {
  return words
    .filter(({ except = [] }) => !isUnder(path, except))
    .flatMap(({ word, within, patterns, use }) =>
      within.flatMap((view) =>
        patterns
          .flatMap((pattern) => [...views[view].matchAll(pattern)])
          .map(({ index }) => at(index, said(word, use))),
      ),
    );
}

function said(word: string, use: string): string {
  return `${word} is banned here, use ${use}`;
}

function isUnder(path: string, places: string[]): boolean {
  return places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place));
}

/** What a text search would mistake: a method named fetch is not the global one. */
function bannedNodes({ path, all }: Source): [offset: number, word: string, use: string][] {
  const asUnknownAs = all('TSAsExpression').filter(
    ({ expression: inner }) =>
      inner.type === 'TSAsExpression' && inner.typeAnnotation.type === 'TSUnknownKeyword',
  );
  const definite = [...all('VariableDeclarator'), ...all('PropertyDefinition')];
  const rows: [nodes: Span[], word: string, use: string][] = [
    [all('CallExpression').filter(callsFetch), 'fetch', 'undici, or an argument with its own name'],
    [all('BinaryExpression').filter(judgesMessage), 'the message of an error', 'its code'],
    [all('TSAnyKeyword'), 'any', 'unknown, and parse it'],
    [all('TSNonNullExpression'), '!', 'must of kernel/assert.ts'],
    [definite.filter((node) => node.definite), '!', 'a value from the start'],
    [isUnder(path, CAST_TWICE) ? [] : asUnknownAs, 'as unknown as', 'a type that the edge parsed'],
  ];
  return rows.flatMap(([nodes, word, use]) => nodes.map((node) => [node.start, word, use]));
}

/** True for a message compared with a text. That there is one, or that two are equal, is fine. */
function judgesMessage({ operator, left, right }: BinaryExpression | PrivateInExpression) {
  if (!/^[!=]==?$/.test(operator)) return false;
  const sides = [left, right].filter(
    (side) => !(side.type === 'Literal' && side.value === null) && !isNamed(side, 'undefined'),
  );
  const messages = sides.filter((side) => methodOf(side) === 'message');
  return sides.length === 2 && messages.length === 1;
}

/** True for a promise that only a timer ends: what ends it, by any name, is given to setTimeout. */
function isSleep({ callee, arguments: [act], start, end }: NewExpression, { views }: Source) {
  if (!isNamed(callee, 'Promise')) return false;
  if (act?.type !== 'ArrowFunctionExpression' && act?.type !== 'FunctionExpression') return false;
  const [ends] = act.params;
  if (ends?.type !== 'Identifier') return false;
  const given = new RegExp(`\\bsetTimeout\\(\\s*(?:\\(\\)\\s*=>\\s*)?${ends.name}\\b`);
  return given.test(views.code.slice(start, end));
}

function callsFetch({ callee }: CallExpression): boolean {
  if (callee.type !== 'MemberExpression') return isNamed(callee, 'fetch');
  return isNamed(callee.object, 'globalThis') && methodOf(callee) === 'fetch';
}
