/** Lines of CSV as of RFC 4180, without line breaks in cells. Pure. */

/** The cells of a line, trimmed; undefined when a quote is not closed or stands inside a cell. */
export function cellsOf(line: string): string[] | undefined {
  if (!line.includes('"')) return line.split(',').map((cell) => cell.trim());
  const cells: string[] = [];
  const cell = /\s*(?:"((?:[^"]|"")*)"\s*|([^",]*))(,|$)/y;
  for (;;) {
    const found = cell.exec(line);
    if (!found) return undefined;
    cells.push(found[1]?.replaceAll('""', '"') ?? found[2]?.trim() ?? '');
    if (found[3] === '') return cells;
  }
}
