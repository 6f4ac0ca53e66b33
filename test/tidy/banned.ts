/**
 * Banned code, each with its replacement: time, randomness, the network and the environment come in
 * as arguments, types are sound, and tests run on real parts without sleeps.
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

interface Ban {
  what: string;
  /** Where it is searched; `code` is what is neither text nor comment. */
  within: View[];
  patterns: RegExp[];
  /** Files, or folders ending in `/`, in which it is allowed. */
  except?: string[];
  use: string;
}

/** What runs in a browser has its clock, timers and requests in one place. */
const BROWSER = 'src/console/web/kit/';
const CLOCK = ['src/kernel/clock.ts', BROWSER];
const RANDOM = ['src/kernel/random.ts'];
const CONFIG = ['src/daemon/config/'];

/** Banned in src. */
const IN_SRC: Ban[] = [
  {
    what: 'process.env',
    within: ['code'],
    patterns: [/\bprocess\??\.env\b/g, /=\s*process\s*;/g],
    // psql and pg_dump get the environment of the command.
    except: [...CONFIG, 'src/cli/tallyhook.ts', 'src/cli/db/access.ts'],
    use: 'the Config of daemon/config/',
  },
  {
    what: 'the clock of the machine',
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
    what: 'randomness',
    within: ['code'],
    patterns: [/\bMath\.random\b|\brandom(?:Bytes|UUID|Int|Fill|FillSync)\b|\bgetRandomValues\b/g],
    except: RANDOM,
    use: 'a Random or Ids argument',
  },
  {
    what: 'a timer',
    within: ['code'],
    patterns: [/(?:(?<![\w.])|\bglobalThis\.)set(?:Timeout|Interval|Immediate)\b/g],
    except: CLOCK,
    use: 'pause or after of kernel/clock.ts',
  },
  {
    what: 'console',
    within: ['code'],
    patterns: [/(?:(?<![\w.])|\bglobalThis\.)console\s*\??\./g],
    except: ['src/kernel/telemetry/log.ts'],
    use: 'the log, or kernel/telemetry/log.ts',
  },
  {
    what: 'process.exit',
    within: ['code'],
    patterns: [/\bprocess\.exit\b/g],
    except: ['src/main.ts', 'src/daemon/delivery/main.ts', 'src/cli/'],
    use: 'an error that main.ts turns into an exit code',
  },
  {
    what: 'the operating system',
    within: ['code', 'texts'],
    patterns: [/\bprocess\??\.platform\b|\/proc\b/g],
    except: ['src/db/platform.ts'],
    use: 'the platform of db/platform.ts',
  },
  {
    what: 'a switch for tests',
    within: ['code', 'texts'],
    patterns: [/__test__|\bNODE_ENV\b/g],
    except: CONFIG,
    use: 'an argument',
  },
  {
    what: 'a silenced compiler',
    within: ['comments'],
    patterns: [/@ts-(?:ignore|expect-error|nocheck)\b/g],
    use: 'types that hold',
  },
  {
    what: 'sql.reserve',
    within: ['code'],
    patterns: [/\b(?:sql|client|pool|db|pg)\.reserve\b/g],
    use: 'a transaction',
  },
  {
    what: 'a session lock',
    within: ['texts'],
    patterns: [/\bpg_(?:try_)?advisory_(?:un)?lock(?:_shared|_all)?\b/gi],
    // What a killed program left running on the server still has its lock.
    except: ['src/db/migrate.ts'],
    use: 'pg_advisory_xact_lock, or a lease of db/leases.ts',
  },
  {
    what: 'select *',
    within: ['texts'],
    // A recordset names its columns itself, in its `as x(…)`.
    patterns: [
      /\bselect(?:\s+(?:all|distinct))?\s+(?:\w+\.)?\*(?!\s+from\s+jsonb_to_recordset\b)/gi,
      /\breturning\s+(?:\w+\.)?\*/gi,
    ],
    use: 'the names of the columns',
  },
  {
    what: 'unfinished work',
    within: ['code', 'texts', 'comments'],
    patterns: [/\b(?:TODO|FIXME)\b/g],
    use: 'the finished thing, or the README',
  },
  {
    what: 'the message of an error',
    within: ['code'],
    patterns: [
      /\.message\s*\??\.(?:includes|match|startsWith|endsWith|indexOf|search)\b/g,
      /\.test\(\s*[\w.]+\.message\b/g,
    ],
    use: 'its code',
  },
];

/** Where a wait of a fixed length is allowed: behind a condition, or as the load of a bench. */
const MAY_WAIT = ['test/harness/', 'test/tools/bench/', 'test/tools/outages/', 'test/tools/soak/'];
const NO_SLEEP = 'until of test/harness';

/** Banned in tests. */
const IN_TESTS: Ban[] = [
  {
    what: 'a test that does not run',
    within: ['code'],
    patterns: [
      /\.(?:skip|only|todo)\b\s*(?:\(|\.each\b)/g,
      /\b(?:test|it|describe)\.(?:skip|only|todo)\b(?!\s*(?:\(|\.each\b))/g,
    ],
    use: 'a test that runs, or none',
  },
  {
    what: 'a test by another name',
    within: ['code'],
    patterns: [/(?<![.\w])test(?:\.each\b[^(]*)?\(/g],
    use: 'it, with a title that is a sentence',
  },
  {
    what: 'a mocked module',
    within: ['code'],
    patterns: [/\bvi\.(?:mock|doMock)\b/g],
    use: 'the real module, or an argument',
  },
  {
    what: 'a sleep',
    within: ['code'],
    patterns: [/\bawait (?:pause|sleep)\(/g],
    except: [...MAY_WAIT, 'test/kernel/clock.test.ts'],
    use: NO_SLEEP,
  },
  {
    what: 'a sleep of node:timers',
    within: ['texts'],
    patterns: [/\btimers\/promises\b/g],
    except: [...MAY_WAIT, 'test/tidy/'],
    use: NO_SLEEP,
  },
  {
    what: 'unfinished work',
    within: ['comments'],
    patterns: [/\b(?:TODO|FIXME)\b/g],
    use: 'the finished thing',
  },
];

/** The folders that may write `as unknown as`; the others parse at the boundary. */
const CAST_TWICE = ['src/kernel/', 'src/db/'];

/** Banned code in src, and types that hide what a value is. */
export function bannedInSrc(tree: Tree): string[] {
  return under(tree, 'src/').flatMap((source) => [
    ...found(source, IN_SRC),
    ...bannedNodes(source).map(([offset, what, use]) => source.at(offset, banned(what, use))),
  ]);
}

/** Banned code in tests. */
export function bannedInTests(tree: Tree): string[] {
  return under(tree, 'test/').flatMap((source) => {
    const sleeps = isUnder(source.path, MAY_WAIT) ? [] : source.all('NewExpression');
    return [
      ...found(source, IN_TESTS),
      ...sleeps
        .filter((made) => isSleep(made, source))
        .map(({ start }) => source.at(start, banned('a sleep', NO_SLEEP))),
    ];
  });
}

function under(tree: Tree, folder: string): Source[] {
  return sourcesOf(tree).filter(({ path }) => path.startsWith(folder));
}

function found({ path, views, at }: Source, bans: Ban[]): string[] {
  return bans
    .filter(({ except = [] }) => !isUnder(path, except))
    .flatMap(({ what, within, patterns, use }) =>
      within.flatMap((view) =>
        patterns
          .flatMap((pattern) => [...views[view].matchAll(pattern)])
          .map(({ index }) => at(index, banned(what, use))),
      ),
    );
}

function banned(what: string, use: string): string {
  return `${what} is banned here, use ${use}`;
}

function isUnder(path: string, places: string[]): boolean {
  return places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place));
}

/** Found in the syntax tree, because a text search would be wrong: a method may be named fetch. */
function bannedNodes({ path, all }: Source): [offset: number, what: string, use: string][] {
  const asUnknownAs = all('TSAsExpression').filter(
    ({ expression: inner }) =>
      inner.type === 'TSAsExpression' && inner.typeAnnotation.type === 'TSUnknownKeyword',
  );
  const definite = [...all('VariableDeclarator'), ...all('PropertyDefinition')];
  const rows: [nodes: Span[], what: string, use: string][] = [
    [
      path.startsWith(BROWSER) ? [] : all('CallExpression').filter(callsFetch),
      ...(['fetch', 'undici, or an argument with its own name'] as const),
    ],
    [all('BinaryExpression').filter(comparesMessage), 'the message of an error', 'its code'],
    [all('TSAnyKeyword'), 'any', 'unknown, and parse it'],
    [all('TSNonNullExpression'), '!', 'must of kernel/errors.ts'],
    [definite.filter((node) => node.definite), '!', 'a value from the start'],
    [
      isUnder(path, CAST_TWICE) ? [] : asUnknownAs,
      'as unknown as',
      'a type that the boundary parsed',
    ],
  ];
  return rows.flatMap(([nodes, what, use]) => nodes.map((node) => [node.start, what, use]));
}

/** True for a message compared with a text. That there is one, or that two are equal, is fine. */
function comparesMessage({ operator, left, right }: BinaryExpression | PrivateInExpression) {
  if (!/^[!=]==?$/.test(operator)) return false;
  const sides = [left, right].filter(
    (side) => !(side.type === 'Literal' && side.value === null) && !isNamed(side, 'undefined'),
  );
  const messages = sides.filter((side) => methodOf(side) === 'message');
  return sides.length === 2 && messages.length === 1;
}

/** True for a promise whose resolve function, by any name, is passed to setTimeout. */
function isSleep({ callee, arguments: [act], start, end }: NewExpression, { views }: Source) {
  if (!isNamed(callee, 'Promise')) return false;
  if (act?.type !== 'ArrowFunctionExpression' && act?.type !== 'FunctionExpression') return false;
  const [ends] = act.params;
  if (ends?.type !== 'Identifier') return false;
  const passed = new RegExp(`\\bsetTimeout\\(\\s*(?:\\(\\)\\s*=>\\s*)?${ends.name}\\b`);
  return passed.test(views.code.slice(start, end));
}

function callsFetch({ callee }: CallExpression): boolean {
  if (callee.type !== 'MemberExpression') return isNamed(callee, 'fetch');
  return isNamed(callee.object, 'globalThis') && methodOf(callee) === 'fetch';
}
