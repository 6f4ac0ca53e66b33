/** Cells of CSV (RFC 4180), read and written. Pure. */

/**
 * The cells of a row, trimmed unless they are quoted; undefined when a quote is not closed or
 * stands inside a cell.
 */
export function cellsOf(row: string, delimiter = ','): string[] | undefined {
  if (!row.includes('"')) return row.split(delimiter).map((cell) => cell.trim());
  const cells: string[] = [];
  const [mark, space] = delimiter === '\t' ? ['\\t', '[^\\S\\t]'] : [`\\${delimiter}`, '\\s'];
  const cell = new RegExp(`${space}*(?:"((?:[^"]|"")*)"${space}*|([^"${mark}]*))(${mark}|$)`, 'y');
  for (;;) {
    const found = cell.exec(row);
    if (!found) return undefined;
    cells.push(found[1]?.replaceAll('""', '"') ?? found[2]?.trim() ?? '');
    if (found[3] === '') return cells;
  }
}

/**
 * What a spreadsheet reads as the start of a formula: also behind a line end, and behind the
 * separators that it splits lines at in some countries, in spite of quotes.
 */
const FORMULA = /(^|[;|\t\r\n])([ "]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Quotes a cell where needed; a ' keeps spreadsheets from running text as a formula. */
export function csvCell(text: string): string {
  const isNumber = /^-?\d+$/.test(text);
  const safe = isNumber ? text : text.replace(FORMULA, "$1$2'").replace(/^(?=[\t\r])/, "'");
  return /[",;|\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvRow(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}
