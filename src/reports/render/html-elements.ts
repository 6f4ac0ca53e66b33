/** Elements of the printed report: escaped text, tables, grouped numbers. */

/** Text that is not escaped again. */
export interface Html {
  readonly html: string;
}

export type Part = Html | string | number | null | readonly Html[];

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

/** `posting_due` as `posting due`. */
export function spaced(name: string): string {
  return name.replaceAll('_', ' ');
}

export function ageText(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export interface Column<Row> {
  head: string;
  number?: true;
  /** Not wrapped. */
  whole?: true;
  of: (row: Row) => Part;
}

/** @param nothing shown when there are no rows */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  nothing: string,
): Html {
  if (rows.length === 0) return html`<p class="nothing">${nothing}</p>`;
  const kind = (column: Column<Row>) =>
    column.number ? 'number' : column.whole ? 'whole' : 'text';
  const heads = columns.map((c) => html`<th scope="col" class="${kind(c)}">${c.head}</th>`);
  const lines = rows.map((row) => {
    const cells = columns.map((c) => html`<td class="${kind(c)}">${c.of(row)}</td>`);
    return html`<tr>${cells}</tr>\n`;
  });
  return html`<div class="wide"><table><thead><tr>${heads}</tr></thead>
<tbody>${lines}</tbody></table></div>`;
}

/** A note when only part of a list is shown. */
export function bounded(shown: number, total: number): Html {
  if (shown >= total) return html``;
  return html`<p class="nothing">The first ${shown} of ${total} are listed.</p>`;
}
