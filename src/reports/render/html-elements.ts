/** Small parts of a page for print: escaped text, tables, numbers that people can read. Pure. */

/** Text that is HTML already. */
export interface Html {
  readonly html: string;
}

/** What a template may hold: HTML, text that gets escaped, or nothing. */
export type Part = Html | string | number | null | readonly Html[];

/** Escapes every hole but HTML itself. */
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

/** Groups of three after which a very long number may be broken. */
const GROUPS_PER_LINE = 5;

/**
 * A whole number, exact: a narrow space between groups of three and a true minus sign. It stays on
 * one line unless it is very long.
 */
export function grouped(number: string | number): Html {
  const digits = String(number);
  const groups = digits.replace('-', '').split(/(?=(?:\d{3})+$)/);
  const text = groups.map((group, i) => {
    const fromEnd = groups.length - i;
    return i > 0 && fromEnd % GROUPS_PER_LINE === 0 ? `<wbr>${group}` : group;
  });
  return { html: (digits.startsWith('-') ? '−' : '') + text.join(THIN_SPACE) };
}

/** `2026-01-31 09:15:02` in UTC, of an RFC 3339 text. */
export function shortInstant(iso: string | null): string {
  return iso === null ? '–' : iso.slice(0, 19).replace('T', ' ');
}

/** A name of ours as words. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** Seconds as people say them. */
export function ageText(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A column: its head, and how a row fills it. Numbers stand right. */
export interface Column<Row> {
  head: string;
  number?: true;
  /** Never broken into lines. */
  whole?: true;
  of: (row: Row) => Part;
}

/** A table, or one line that says there is nothing. */
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

/** Says how much of a bounded list is shown; nothing when all of it is. */
export function bounded(shown: number, total: number): Html {
  if (shown >= total) return html``;
  return html`<p class="nothing">The first ${shown} of ${total} are listed.</p>`;
}
