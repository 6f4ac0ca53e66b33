/** Which texts of the sources are SQL. */
import type { Text } from './source.ts';

/** Template tags that never mark SQL. */
const OTHER_TAGS = ['html', 'raw', 'css'];

const VERBS = 'select with update lock create alter drop truncate notify listen'.split(' ');
const STATEMENT = new RegExp(
  `^\\s*(?:(?:${VERBS.join('|')})\\s|(?:insert|merge)\\s+into\\s|delete\\s+from\\s)`,
  'i',
);

/** True for a template whose tag is `sql`, or that reads like a statement under any other tag. */
export function isSql({ tag, text }: Text): boolean {
  if (tag === undefined || OTHER_TAGS.includes(tag)) return false;
  return tag === 'sql' || STATEMENT.test(text);
}
