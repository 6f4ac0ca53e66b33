/** Cells of CSV (RFC 4180) as they are read; `resources/cells.ts` writes them. Pure. */

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
