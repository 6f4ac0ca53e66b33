/** Lists of what the API answers, as lines of a terminal. */
import { cellText } from '../../resources/cells.ts';
import { columnsOf, type Resource, type Shown } from '../../resources/resource.ts';

/**
 * The columns of one, in their order.
 * @param instead texts of columns that say more than a value
 */
export function lineOf<R extends Resource>(
  resource: R,
  row: Shown<R>,
  instead: Record<string, string> = {},
): string {
  const values: Record<string, unknown> = row;
  const cells = columnsOf(resource).map(({ name }) => instead[name] ?? cellText(values[name]));
  return cells.map((text) => text || '-').join('  ');
}
