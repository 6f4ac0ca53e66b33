/**
 * Who writes and who reads which table. Each table has one writing folder, the one whose tables.ts
 * defines it. db/ may also define a table by its own
 * `create table`.
 *
 * Known limits: a table passed as an argument or under a second name is not seen, nor what a
 * function, view or trigger of the database reads and writes.
 */
import type { CallExpression, Expression, Node } from 'oxc-parser';
import { isNamed, methodOf, type Source, srcOf, type Text, type Tree } from './source.ts';
import { isSql } from './sql.ts';

/**
 * The tables of other folders that a folder names in its SQL. Everything else of another folder is
 * read through its public module or its tables.ts.
 */
const MAY_READ: Record<string, string> = {
  operations: 'daemons keys quota',
  ledger:
    'approvals decisions drift_actions drifts due_postings operations period_actions periods ' +
    'quarantine_releases transitions',
  observer: 'open_operations operation_effects operations tokens wallets',
  reconciler:
    'accounts due_postings observations observed_holders open_operations operation_effects ' +
    'operations ' +
    'posting_requests ' +
    'targets transitions unprocessed_observations',
  reports:
    'batches chain day_balances decisions drifts due_postings entries installation ' +
    'nft_movements observed_holders open_operations operation_effects operations ' +
    'posting_requests targets tokens transactions unprocessed_observations wallets accounts',
  webhooks: 'events',
};

interface Table {
  name: string;
  /** The folder that may write it. */
  owner: string;
  path: string;
  /** The constant that holds it; undefined for one that db/ creates in SQL. */
  variable: string | undefined;
  offset: number;
}

/** The tables and files of the whole tree. */
interface Known {
  tables: Table[];
  sources: Map<string, Source>;
}

interface Write {
  offset: number;
  /** The table's name in Postgres; undefined when it is computed. */
  name: string | undefined;
}

const VERBS = [
  'insert\\s+into',
  'merge\\s+into(?:\\s+only)?',
  'delete\\s+from(?:\\s+only)?',
  // Neither `for update of t` nor `do update set` names a table to write.
  '(?<!\\b(?:for|key|do|on)\\s+)update(?:\\s+only)?',
  'truncate(?:\\s+table)?(?:\\s+only)?',
];
const SCHEMA = '(?:"?tallyhook"?\\s*\\.\\s*)';
const NAME = '"?([a-z_][a-z0-9_]*)"?|\\u0001(\\d+)\\u0002*';
const WRITE = new RegExp(`\\b(${VERBS.join('|')})\\s+(${SCHEMA}?)(?:${NAME})`, 'gi');

/** Writes of a table by another folder than its owner, or of no table we know. */
export function strayWrites(tree: Tree): string[] {
  const sources = srcOf(tree);
  const tables = sources.flatMap(definedIn);
  const known = { tables, sources: new Map(sources.map((s) => [s.path, s])) };
  return sources.flatMap((source) => {
    const texts = source.texts.flatMap((text) => writesIn(text, source.path, known));
    const writes = [...texts, ...drizzleWrites(source, known)].flatMap(({ name, offset }) => {
      const wrong = wrongWrite(name, source, tables);
      return wrong ? [source.at(offset, wrong)] : [];
    });
    return [...misplaced(source, tables), ...writes];
  });
}

const READ = new RegExp(
  `\\b(?:from|join|using)\\s+(?:only\\s+)?${SCHEMA}"?(\\w+)"?(?!\\w|\\s*\\()`,
  'gi',
);

interface Read {
  /** The folder that writes the table. */
  owner: string;
  /** The folder that reads it. */
  folder: string;
  name: string;
  /** A finding at the place where it is read. */
  at: (what: string) => string;
}

/** Where SQL of one folder reads a table of another one. */
export function readsAcross(tree: Tree): Read[] {
  const sources = srcOf(tree);
  const owners = new Map(sources.flatMap(definedIn).map(({ name, owner }) => [name, owner]));
  return sources.flatMap(({ folder, texts, at }) =>
    texts.flatMap(({ text, start }) =>
      [...text.matchAll(READ)].flatMap(({ 1: name = '', index }) => {
        const owner = owners.get(name);
        if (!owner || owner === folder) return [];
        return { owner, folder, name, at: (what: string) => at(start + index, what) };
      }),
    ),
  );
}

/** Reads of another folder's table that MAY_READ does not list, and what it lists in vain. */
export function strayReads(tree: Tree): string[] {
  const unused = new Set(
    Object.entries(MAY_READ).flatMap(([folder, names]) =>
      names.split(' ').map((name) => `${folder} ${name}`),
    ),
  );
  const stray = readsAcross(tree).flatMap(({ owner, folder, name, at }) => {
    unused.delete(`${folder} ${name}`);
    const may = (MAY_READ[folder] ?? '').split(' ').includes(name);
    return may ? [] : [at(`reads ${name} of ${owner}, use ${owner}/${owner}.ts`)];
  });
  const folders = new Set(srcOf(tree).map(({ folder }) => folder));
  const vain = [...unused].filter((pair) => folders.has(pair.split(' ')[0] ?? ''));
  return [...stray, ...vain.map((pair) => `MAY_READ lists ${pair}, which no SQL reads`)];
}

function wrongWrite(
  name: string | undefined,
  { folder }: { folder: string },
  tables: Table[],
): string | undefined {
  if (name === undefined) {
    return folder === 'db' ? undefined : 'writes a table whose name is computed, use its own name';
  }
  const owner = tables.find((table) => table.name === name)?.owner;
  if (!owner) return `writes ${name}, which has no owner, use a table that a tables.ts defines`;
  if (owner !== folder) return `writes ${name}, a table of ${owner}, use ${owner}/${owner}.ts`;
  return undefined;
}

/** Tables that a file defines outside a tables.ts, or after another folder did. */
function misplaced({ path, folder, at }: Source, tables: Table[]): string[] {
  return tables.flatMap(({ name, offset, owner, ...table }, index) => {
    if (table.path !== path || table.variable === undefined) return [];
    const first = tables.slice(0, index).find((t) => t.name === name && t.owner !== owner);
    if (first) return [at(offset, `defines ${name} again, use the one of ${first.owner}`)];
    const home = folder === 'db' || path === `src/${folder}/tables.ts`;
    return home ? [] : [at(offset, `defines ${name}, use ${folder}/tables.ts`)];
  });
}

/** `export const x = tallyhook.table('name', …)`, and `create table tallyhook.name` in db/. */
function definedIn(source: Source & { folder: string }): Table[] {
  const { path, folder: owner } = source;
  const drizzle = source.all('CallExpression').flatMap((call): Table[] => {
    const made = isOurTable(call.callee) || isNamed(call.callee, 'pgTable');
    const first = call.arguments[0];
    if (!made || first?.type !== 'Literal' || typeof first.value !== 'string') return [];
    return [{ name: first.value, owner, path, variable: constantOf(call), offset: call.start }];
  });
  if (owner !== 'db') return drizzle;
  const created = new RegExp(
    `create\\s+table\\s+(?:if\\s+not\\s+exists\\s+)?${SCHEMA}(?:${NAME})`,
    'gi',
  );
  const byHand = source.texts.flatMap(({ text, start }) =>
    [...text.matchAll(created)].flatMap(({ 1: name, index }): Table[] =>
      name ? [{ name, owner, path, variable: undefined, offset: start + index }] : [],
    ),
  );
  return [...drizzle, ...byHand];
}

/** True for `tallyhook.table`, `columns.tallyhook.table` and `pgSchema('tallyhook').table`. */
function isOurTable(callee: Expression): boolean {
  if (callee.type !== 'MemberExpression' || methodOf(callee) !== 'table') return false;
  const { object } = callee;
  if (object.type === 'CallExpression') return isNamed(object.callee, 'pgSchema');
  return isNamed(object, 'tallyhook') || methodOf(object) === 'tallyhook';
}

/** The constant that a definition ends in, also behind `.enableRLS()` and the like. */
function constantOf(call: CallExpression): string {
  let node: Node | null | undefined = call.parent;
  while (node && node.type !== 'VariableDeclarator') node = node.parent;
  return node?.id.type === 'Identifier' ? node.id.name : '';
}

/** `.insert(x)`, `.update(x)` and `.delete(x)` where x is a table; a Map's `.delete` is none. */
function drizzleWrites(source: Source, known: Known): Write[] {
  return source.all('CallExpression').flatMap((call): Write[] => {
    const verb = methodOf(call.callee);
    const first = call.arguments[0];
    if (!verb || !['insert', 'update', 'delete'].includes(verb)) return [];
    if (!first || first.type === 'SpreadElement') return [];
    const name = tableOf(first, source.path, known);
    return name ? [{ name, offset: call.start }] : [];
  });
}

/** The tables that a text writes, by their names or through a hole. */
function writesIn(text: Text, path: string, known: Known): Write[] {
  const sql = isSql(text);
  return [...text.text.matchAll(WRITE)].flatMap((match): Write[] => {
    const [whole, verb = '', schema, word, hole] = match;
    const offset = text.start + match.index;
    const rest = text.text.slice(match.index + whole.length);
    if (hole !== undefined) {
      if (!sql && !schema && !/into|from/i.test(verb)) return [];
      const table = text.holes[Number(hole)];
      const name = table && (tableOf(table, path, known) ?? spelledName(table));
      return [{ name, offset }];
    }
    if (schema)
      return [...(word ? [word] : []), ...listed(verb, rest)].map((name) => ({ name, offset }));
    // Without the schema it may be a temporary table, a common table expression, or plain English.
    const ours = known.tables.some(({ name }) => name === word);
    const update = !/^update/i.test(verb) || /^\s+(?:as\s+)?(?:\w+\s+)?set\b/i.test(rest);
    return sql && ours && update ? [{ name: word, offset }] : [];
  });
}

/** The further tables of `truncate a, b`. */
function listed(verb: string, rest: string): string[] {
  const list = /^truncate/i.test(verb) ? /^(?:\s*,\s*[\w".]+)+/.exec(rest)?.[0] : undefined;
  return [...(list ?? '').matchAll(/(\w+)"?\s*(?=,|$)/g)].flatMap(({ 1: name }) => name ?? []);
}

/** The name in `sql('tallyhook.name')`, `sql.identifier('name')` and the like. */
function spelledName(expression: Expression): string | undefined {
  const value = expression.type === 'CallExpression' ? expression.arguments[0] : expression;
  if (value?.type !== 'Literal' || typeof value.value !== 'string') return undefined;
  return value.value.replace(/^tallyhook\./, '');
}

/** The table that `operations` or `tables.operations` stands for in a file. */
function tableOf(expression: Expression, path: string, known: Known): string | undefined {
  if (expression.type === 'Identifier') return tableNamed(expression.name, path, known);
  if (expression.type !== 'MemberExpression' || expression.object.type !== 'Identifier')
    return undefined;
  const { object, property } = expression;
  const whole = known.sources
    .get(path)
    ?.imports.find(({ names }) => names.some((n) => n.theirs === '*' && n.ours === object.name));
  return whole?.target && property.type === 'Identifier'
    ? tableNamed(property.name, whole.target, known)
    : undefined;
}

/** Follows a name through imports and re-exports to the table that it is defined as. */
function tableNamed(name: string, path: string, known: Known, depth = 0): string | undefined {
  const own = known.tables.find((table) => table.path === path && table.variable === name);
  if (own || depth > 5) return own?.name;
  for (const { target, names, reexported } of known.sources.get(path)?.imports ?? [])
    for (const { theirs, ours } of names) {
      const all = reexported && ours === '*';
      if (!target || !(ours === name || all)) continue;
      const found = tableNamed(all ? name : theirs, target, known, depth + 1);
      if (found) return found;
    }
  return undefined;
}
