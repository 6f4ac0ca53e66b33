/**
 * Values as cells of files. What a CSV or a workbook makes of a value follows from the kind of its
 * field, never from how its text looks. Pure.
 */
import type { Kind } from './fields.ts';

/** A value as it is shown, with the kind of its field. */
export interface Cell {
  kind: Kind;
  value: unknown;
}

/** What a spreadsheet may sum. Digits name something, such as a contract, so they are text. */
export function isNumber({ kind }: Cell): boolean {
  return kind === 'amount' || kind === 'count' || kind === 'number';
}

/**
 * Empty for what is not there; a list of texts in one cell, anything else as JSON.
 * @param json writes it; another one where numbers were read without loss
 */
export function cellText(value: unknown, json: (value: object) => string = JSON.stringify): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return String(value);
  const isTexts = Array.isArray(value) && value.every((one) => typeof one !== 'object');
  return isTexts ? value.join(' ') : json(value);
}

/** Spreadsheets take CSV that begins with it for UTF-8, and any other for an older encoding. */
const BYTE_ORDER_MARK = '\ufeff';

/** The first line of a CSV file. @param bom whether it begins with the mark of UTF-8 */
export function csvHead(columns: readonly string[], bom: boolean): string {
  const heads = csvRow(columns.map((value) => ({ kind: 'text', value })));
  return bom ? `${BYTE_ORDER_MARK}${heads}` : heads;
}

/** A line of a CSV file by RFC 4180. */
export function csvRow(cells: readonly (Cell | undefined)[]): string {
  return `${cells.map((cell) => (cell ? csvCell(cell) : '')).join(',')}\r\n`;
}

/**
 * What a spreadsheet reads as the start of a formula: also behind a line end, and behind the
 * separators that it splits lines at in some countries, in spite of quotes.
 */
const FORMULA = /(^|[;|\t\r\n])([ "]*)(?='*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const GUARDED = /(^|[;|\t\r\n])([ "]*)'(?='*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** What ends a cell, here or in some countries. */
const MARKS = /[",;|\t\r\n]/;
/** What readers trim, or take for a number. */
const ALTERED = /^[\s\d.]|\s$/;

/** A ' keeps spreadsheets from running text as a formula; numbers and instants need none. */
export function csvCell(cell: Cell): string {
  const text = cellText(cell.value);
  const { kind } = cell;
  if (isNumber(cell) || kind === 'digits' || kind === 'instant' || kind === 'flag') return text;
  const safe = text.replace(FORMULA, "$1$2'").replace(/^(?='*[\t\r])/, "'");
  const isQuoted = MARKS.test(safe) || (kind === 'text' && ALTERED.test(safe));
  return isQuoted ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The text of a cell without its quotes, as it was before `csvCell` kept it from running. */
export function plainText(cell: string): string {
  return cell.replace(/^'(?='*[\t\r])/, '').replace(GUARDED, '$1$2');
}
