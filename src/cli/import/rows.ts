/** Reads a file of CSV (RFC 4180) or NDJSON as rows with their line numbers, while it arrives. */
import { cellsOf } from '../../kernel/csv.ts';
import { type Json, tryParseJson } from '../../kernel/json.ts';

/** A row with the number of its first line, from 1; `problem` says why it cannot be read. */
export type Row =
  | { line: number; values: Record<string, Json> }
  | { line: number; problem: { code: string; detail: string } };

/** Longer rows are refused, to bound the memory. */
const ROW_MAX = 262_144;

export async function* ndjsonRows(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  for await (const { line, text } of textLines(chunks, false)) {
    if (text.trim() === '') continue;
    const document = tryParseJson(text);
    const isObject = document !== null && typeof document === 'object' && !Array.isArray(document);
    if (isObject) yield { line, values: document as Record<string, Json> };
    else yield refused(line, 'malformed_json', 'the line is no JSON object');
  }
}

/** The first row names the columns. Cells may hold line breaks within quotes. */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  delimiter: string,
): AsyncGenerator<Row> {
  let columns: string[] | undefined;
  for await (const { line, text } of textLines(chunks, true)) {
    if (text.trim() === '') continue;
    const cells = text.length > ROW_MAX ? undefined : cellsOf(text, delimiter);
    if (!cells) yield refused(line, 'malformed_csv', 'a quote is not closed or stands in a cell');
    else if (!columns) columns = cells.map((name) => name.trim());
    else if (cells.length !== columns.length)
      yield refused(
        line,
        'malformed_csv',
        `the line has ${cells.length} cells and the header ${columns.length}`,
      );
    else {
      const named = columns.map((name, n) => [name, cells[n] ?? ''] as const);
      yield { line, values: Object.fromEntries(named) };
    }
  }
}

function refused(line: number, code: string, detail: string): Row {
  return { line, problem: { code, detail } };
}

/** Lines; joined while a quote is open, until they are longer than a row may be. */
async function* textLines(
  chunks: AsyncIterable<string>,
  quotes: boolean,
): AsyncGenerator<{ line: number; text: string }> {
  let line = 1;
  let held: string[] = [];
  let [length, isOpen] = [0, false];
  for await (const text of linesOf(chunks)) {
    held.push(text);
    length += text.length;
    if (quotes && text.split('"').length % 2 === 0) isOpen = !isOpen;
    if (isOpen && length <= ROW_MAX) continue;
    yield { line, text: held.join('\n') };
    line += held.length;
    held = [];
    [length, isOpen] = [0, false];
  }
  if (held.length > 0) yield { line, text: held.join('\n') };
}

async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  let first = true;
  for await (const chunk of chunks) {
    const text = first && chunk.startsWith('\ufeff') ? chunk.slice(1) : chunk;
    first = false;
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
  }
  if (rest !== '') yield rest;
}
