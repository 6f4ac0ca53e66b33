/** What the API answers, as lines of a terminal. */
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { cellText } from '../../resources/cells.ts';
import { columnsOf, type Resource, type Shown } from '../../resources/resource.ts';

/** What others wrote, such as a receiver or a creator of tokens, must not steer the terminal. */
export function shownText(value: unknown): string {
  const escaped = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return cellText(value, jsonText).replace(/\p{Cc}/gu, escaped) || '-';
}

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
  const cells = columnsOf(resource).map(({ name }) => shownText(instead[name] ?? values[name]));
  return cells.join('  ');
}

/** A longer text does not make the others of its column as wide. */
const WIDTH_MAX = 44;

interface Options {
  json: true | undefined;
  /** The line for an empty list. */
  none: string;
}

/** Prints the columns of rows below their names, or all as JSON. */
export function printTable(
  columns: readonly string[],
  data: readonly object[],
  options: Options,
): void {
  printData(data, options, () => {
    const rows = data.map((row) => {
      const values: Record<string, unknown> = { ...row };
      return columns.map((name) => shownText(values[name]));
    });
    const all = [columns, ...rows];
    const widths = columns.map((_, n) =>
      Math.max(...all.map((cells) => Math.min(cells[n]?.length ?? 0, WIDTH_MAX))),
    );
    return all.map((cells) =>
      cells
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  });
}

/** Prints a line for each row, or all as JSON. */
export function printRows<Row>(
  data: readonly Row[],
  { line, ...options }: Options & { line: (row: Row) => string },
): void {
  printData(data, options, () => data.map(line));
}

function printData(
  data: readonly unknown[],
  { json, none }: Options,
  lines: () => readonly string[],
): void {
  if (json) printLine(jsonText({ data }));
  else for (const text of data.length === 0 ? [none] : lines()) printLine(text);
}
