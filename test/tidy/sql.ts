/** Where SQL may be: in `store.ts` or `…-store.ts` of any sub-folder, in tables.ts and in db/. */
import type { CallExpression } from 'oxc-parser';
import { methodOf, srcOf, type Text, type Tree } from './source.ts';

/** The files that may hold SQL. */
const HOMES = {
  stores: /^src\/.+\/(?:store|[\w-]+-store)\.ts$/,
  tables: /^src\/[^/]+\/tables\.ts$/,
  db: /^src\/db\//,
};

/** Template tags that never mark SQL. */
const OTHER_TAGS = ['html', 'raw', 'css'];

const VERBS = 'select with update lock create alter drop truncate notify listen'.split(' ');
const STATEMENT = new RegExp(
  `^\\s*(?:(?:${VERBS.join('|')})\\s|(?:insert|merge)\\s+into\\s|delete\\s+from\\s)`,
  'i',
);
const OUR_SCHEMA = /\b(?:from|join|into|update|table|only)\s+"?tallyhook"?\s*\./i;

/** True for a template whose tag is `sql`, or that reads like a statement under any other tag. */
export function isSql({ tag, text }: Text): boolean {
  if (tag === undefined || OTHER_TAGS.includes(tag)) return false;
  return tag === 'sql' || STATEMENT.test(text);
}

/** True for a file that may write: `store.ts`, `…-store.ts`, and all of db/. */
export function isStore(path: string): boolean {
  return HOMES.stores.test(path) || HOMES.db.test(path);
}

/** SQL and drizzle outside their homes. */
export function straySql(tree: Tree): string[] {
  const homes = Object.values(HOMES);
  return srcOf(tree)
    .filter(({ path }) => !homes.some((home) => home.test(path)))
    .flatMap((source) => {
      const found = [
        ...source.imports
          .filter(({ target }) => target === 'src/db/drizzle.ts')
          .map(({ offset }) => [offset, 'imports drizzle'] as const),
        ...source.texts
          .filter((text) => isSql(text) || OUR_SCHEMA.test(text.text))
          .map(({ start }) => [start, 'holds SQL'] as const),
        ...source
          .all('CallExpression')
          .filter(buildsQuery)
          .map(({ start }) => [start, 'builds a query'] as const),
      ];
      const store = `${source.folder}/store.ts or a …-store.ts beside it`;
      return found.map(([offset, what]) => source.at(offset, `${what}, use ${store}`));
    });
}

/** True for `select(…).from(…)` of drizzle. */
function buildsQuery({ callee }: CallExpression): boolean {
  if (callee.type !== 'MemberExpression' || methodOf(callee) !== 'from') return false;
  const select = callee.object.type === 'CallExpression' ? methodOf(callee.object.callee) : '';
  return select === 'select' || select === 'selectDistinct';
}
