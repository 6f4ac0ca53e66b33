/** The columns of a list of a resource, as its definition has them. */
import { cellText } from '../../../resources/cells.ts';
import { columnsOf, type Resource, type Shown } from '../../../resources/resource.ts';
import { Amount, Code, type Column, Time, WalletLink } from './elements.ts';
import { wordsOf } from './format.ts';
import { html } from './html.ts';

/** @param own how this page shows a column; null leaves it out */
export function columnsFor<R extends Resource>(
  resource: R,
  own: { [name: string]: Partial<Column<Shown<R>>> | null } = {},
): Column<Shown<R>>[] {
  return columnsOf(resource).flatMap(({ name, title, kind }) => {
    const mine = own[name];
    if (mine === null) return [];
    const of = (row: Shown<R>) => cellOf(kind, (row as Record<string, unknown>)[name]);
    const number = kind === 'amount' || kind === 'count' || kind === 'number';
    return [{ head: title, ...(number ? { number } : {}), of, ...mine }];
  });
}

function cellOf(kind: string, value: unknown): unknown {
  if (value === null || value === undefined) return '';
  if (kind === 'instant') return html`<${Time} at=${value} />`;
  if (kind === 'amount') return html`<${Amount} of=${value} />`;
  if (kind === 'address') return html`<${WalletLink} addr=${value} />`;
  if (kind === 'hash') return html`<${Code} text=${value} />`;
  if (kind === 'one-of') return wordsOf(String(value));
  return cellText(value);
}
