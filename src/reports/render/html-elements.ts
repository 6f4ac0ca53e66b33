/** Elements of the printed report: escaped text, tables, grouped numbers. */
import { cellText } from '../../resources/cells.ts';
import type { Field } from '../../resources/fields.ts';
import { localText } from '../../resources/local-time.ts';
import { leftOutText, NOT_LISTED } from '../../resources/reports/sections.ts';
import { columnsOf, type Resource, type Shown } from '../../resources/resource.ts';

/** Text that is not escaped again. */
export interface Html {
  readonly html: string;
}

type Part = Html | string | number | null | readonly Html[];

/** Escapes every value except Html. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const filled = texts.map((text, i) => text + partText(parts[i] ?? ''));
  return { html: filled.join('') };
}

function partText(part: Part): string {
  if (part === null) return '';
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part));
  return 'html' in part ? part.html : part.map((one) => one.html).join('');
}

function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (sign) => names[sign] ?? '').replaceAll("'", '&#39;');
}

const THIN_SPACE = '\u202f';

/** Groups of three digits after which a long number may be wrapped. */
const GROUPS_PER_LINE = 5;

/** A whole number with all digits, in groups of three. */
export function grouped(number: string | number): Html {
  const digits = String(number);
  const groups = digits.replace('-', '').split(/(?=(?:\d{3})+$)/);
  const text = groups.map((group, i) => {
    const fromEnd = groups.length - i;
    return i > 0 && fromEnd % GROUPS_PER_LINE === 0 ? `<wbr>${group}` : group;
  });
  return { html: (digits.startsWith('-') ? '−' : '') + text.join(THIN_SPACE) };
}

/** The same within a sentence. */
export function groupedText(digits: string): string {
  return digits.replaceAll(/\B(?=(\d{3})+$)/g, THIN_SPACE);
}

/** `posting_due` as `posting due`. */
export function spaced(name: string): string {
  return name.replaceAll('_', ' ');
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function ageText(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/**
 * A table of a resource with the columns of its definition.
 * @param own what a column shows instead of its value
 * @param nothing shown when there are no rows
 */
export function tableOf<R extends Resource>(
  resource: R,
  rows: readonly Shown<R>[],
  { zone, own = {}, nothing }: { zone: string; own?: Own<Shown<R>>; nothing: string },
): Html {
  if (rows.length === 0) return html`<p class="nothing">${nothing}</p>`;
  const columns = columnsOf(resource).map(({ name, title }) => {
    const field = resource.fields[name] as Field;
    const of = own[name] ?? ((row) => partOf(field, row[name as keyof Shown<R>], zone));
    return { title, of, mark: own[name] ? 'text' : markOf(field) };
  });
  const heads = columns.map(
    ({ title, mark }) => html`<th scope="col" class="${mark}">${title}</th>`,
  );
  const lines = rows.map((row) => {
    const cells = columns.map(({ of, mark }) => html`<td class="${mark}">${of(row)}</td>`);
    return html`<tr>${cells}</tr>\n`;
  });
  return html`<div class="wide" tabindex="0" role="group" aria-label="Table">
<table><thead><tr>${heads}</tr></thead>
<tbody>${lines}</tbody></table></div>`;
}

type Own<Row> = { [column: string]: (row: Row) => Part };

/** The class of the cells of a column; `whole` is not wrapped. */
function markOf({ kind, unit }: Field): string {
  if (kind === 'instant' || unit === 's') return 'whole';
  return kind === 'amount' || kind === 'count' ? 'number' : 'text';
}

function partOf({ kind, unit }: Field, value: unknown, zone: string): Part {
  if (value === null || value === undefined) return '–';
  if (unit === 's') return ageText(Number(value));
  if (kind === 'amount' || kind === 'count') return grouped(String(value));
  return kind === 'instant' ? localText(String(value), zone) : cellText(value);
}

/** A note when only part of a list is shown. */
export function bounded(list: { listed: readonly object[]; total: number }): Html {
  const leftOut = leftOutText(list);
  return leftOut === null
    ? html``
    : html`<p class="nothing">${capital(NOT_LISTED)}: ${leftOut}.</p>`;
}
