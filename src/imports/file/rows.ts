/** Reads the text of a file of CSV or NDJSON as rows with their line numbers, while it arrives. */
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { Failure } from '../../kernel/errors.ts';
import { isObject, type Json, tryParseJson } from '../../kernel/json.ts';
import { plainText } from '../../resources/cells.ts';
import { DELIMITERS } from '../../resources/operations/import.ts';

/** A row with the number of its first line, from 1; `problem` says why it cannot be read. */
export type Row =
  | { line: number; values: Record<string, Json> }
  | { line: number; problem: { code: string; detail: string } };

/** Longer rows are refused, to bound the memory. */
const ROW_MAX = 262_144;
/** A file without line ends is refused. */
const LINE_MAX = 4_194_304;

export async function* ndjsonRows(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  for await (const text of textLines(chunks)) {
    line++;
    if (text.trim() === '') continue;
    const document = text.length > ROW_MAX ? undefined : tryParseJson(text);
    if (isObject(document)) yield { line, values: document };
    else yield refused(line, 'malformed_json', 'the line is no JSON object');
  }
}

/**
 * The first row names the columns. Cells may hold line breaks within quotes. Rows without a value
 * are left out, and so are cells without one behind the last column.
 * @param onColumns gets the names before the first row, and may refuse them
 * @throws Failure `invalid_request` for a column that stands twice
 */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  delimiter: string | undefined,
  onColumns: (names: readonly string[]) => void = () => {},
): AsyncGenerator<Row> {
  let columns: string[] | undefined;
  for await (const { line, cells } of records(chunks, delimiter)) {
    if (!columns) {
      columns = withoutEmptyEnd(cells);
      requireOnce(columns);
      onColumns(columns);
    } else {
      const row = cells.length > columns.length ? withoutEmptyEnd(cells, columns.length) : cells;
      if (row.length === columns.length) yield { line, values: valuesOf(columns, row) };
      else {
        const counts = `the line has ${row.length} cells and the header ${columns.length}`;
        yield refused(line, 'malformed_csv', counts);
      }
    }
  }
}

function valuesOf(columns: readonly string[], cells: readonly string[]): Record<string, Json> {
  const named = columns.map((name, n) => [name, plainText(cells[n] ?? '')] as const);
  return Object.fromEntries(named.filter(([name]) => name !== ''));
}

function withoutEmptyEnd(cells: readonly string[], least = 0): string[] {
  let { length } = cells;
  while (length > least && cells[length - 1] === '') length--;
  return cells.slice(0, length);
}

function requireOnce(columns: readonly string[]): void {
  const twice = columns.filter((name, n) => name !== '' && columns.indexOf(name) !== n);
  if (twice.length === 0) return;
  const names = [...new Set(twice)].join(', ');
  throw new Failure('invalid_request', `columns that stand twice: ${names}; rename one of each`);
}

function refused(line: number, code: string, detail: string): Row {
  return { line, problem: { code, detail } };
}

const PROBLEMS: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_MAX_RECORD_SIZE: `the row is longer than ${ROW_MAX} bytes; a quote may not be closed`,
};

/**
 * @throws Failure `invalid_request` with the line of a wrong quote, behind which no row is certain
 */
async function* records(
  chunks: AsyncIterable<string>,
  named: string | undefined,
): AsyncGenerator<{ line: number; cells: string[] }> {
  const { first, all } = await peek(chunks);
  let end = 0;
  const parser = parse({
    delimiter: named ?? delimiterOf(first),
    record_delimiter: '\n',
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    trim: true,
    info: true,
    max_record_size: ROW_MAX,
    on_record: (record, { lines }) => {
      end = lines;
      return record;
    },
  });
  const source = Readable.from(all);
  source.once('error', (error) => parser.destroy(error)).pipe(parser);
  try {
    for await (const { record: cells, info } of parser as AsyncIterable<Parsed>) {
      // The parser counts a row at its end.
      const breaks = cells.reduce((sum, cell) => sum + cell.split('\n').length - 1, 0);
      yield { line: info.lines - breaks, cells };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const problem = PROBLEMS[error.code];
    const line = problem === undefined ? Number(error.lines) : end + 1;
    const detail = `line ${line}: ${problem ?? 'a quote stands inside a cell'}`;
    throw new Failure('invalid_request', detail);
  } finally {
    source.destroy();
  }
}

interface Parsed {
  record: string[];
  info: { lines: number };
}

/** The first line that is not empty, and the whole text. */
async function peek(chunks: AsyncIterable<string>) {
  const rest: AsyncIterator<string, unknown, undefined> = chunks[Symbol.asyncIterator]();
  let head = '';
  let isDone = false;
  while (!isDone && head.length < ROW_MAX && !head.trimStart().includes('\n')) {
    const { value, done } = await rest.next();
    if (done) isDone = true;
    else head += value;
  }
  async function* all(): AsyncGenerator<string> {
    yield head;
    if (!isDone) yield* { [Symbol.asyncIterator]: () => rest };
  }
  return { first: head.trimStart().split('\n', 1)[0] ?? '', all: all() };
}

/** That which separates most names in the header. */
function delimiterOf(header: string): string {
  const names = header.replace(/"(?:[^"]|"")*"/g, '');
  const countOf = (mark: string) => names.split(mark).length;
  return DELIMITERS.reduce((best, mark) => (countOf(mark) > countOf(best) ? mark : best));
}

async function* textLines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > LINE_MAX)
      throw new Failure('invalid_request', `a line is longer than ${LINE_MAX} characters`);
  }
  if (rest !== '') yield rest;
}
