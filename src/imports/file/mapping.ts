/**
 * How rows of an app become reports: which column is which field, constants, translated values, and
 * how it writes times and numbers. The reports are checked with the schema of `POST
 * /api/operations`. Pure.
 */
import { Failure } from '../../kernel/errors.ts';
import { canonicalJson, type Json, jsonText } from '../../kernel/json.ts';
import type {
  DECIMAL_SIGNS,
  DELIMITERS,
  FORMATS,
  THOUSANDS,
} from '../../resources/operations/import.ts';
import { operationExport, writeFields } from '../../resources/operations/operation.ts';
import type { Row } from './rows.ts';
import { makeTimeReader, type TimeOptions } from './times.ts';

const NUMBERS = ['tx_log_no', 'tx_app_no', 'operation_no', 'contract_id', 'token_id'];
const AMOUNTS = ['amount', 'fee_amount'];

/** The fields of a report. */
export const FIELDS: readonly string[] = [
  'kind',
  'occurred_at',
  'tx_log_no',
  'tx_app_no',
  'tx_hash',
  ...Object.keys(writeFields),
  'reference',
  'operation_id',
  'distinct',
];
/** As long as a line of `POST /api/operations`. */
const REPORT_MAX = 65_536;
/** Names that are listed, and how much of each. */
const IGNORED_MAX = 100;
const NAME_MAX = 200;
/** What every report has. */
const REQUIRED = ['kind', 'occurred_at'];

/** How a file is read. Each has an option of the command and a name in its mapping file. */
export interface ImportOptions {
  format?: (typeof FORMATS)[number] | undefined;
  /** Of TextDecoder, such as euc-kr; UTF-8 by default. */
  encoding?: string | undefined;
  delimiter?: (typeof DELIMITERS)[number] | undefined;
  /** By field, the column that holds it. */
  map?: Record<string, string> | undefined;
  /** By field, the value of rows without a cell. */
  set?: Record<string, string> | undefined;
  /** By field, its translations. */
  values?: Record<string, Record<string, string>> | undefined;
  time_zone?: string | undefined;
  date_order?: TimeOptions['order'];
  unix_time?: TimeOptions['unix'];
  /** The sign between groups of three figures. */
  thousands?: (typeof THOUSANDS)[number] | undefined;
  /** The sign before the fraction, which must be zero. */
  decimal_sign?: (typeof DECIMAL_SIGNS)[number] | undefined;
}

/** One row: the report in canonical JSON, or the reason why there is none. */
export type Line =
  | { line: number; report: string }
  | { line: number; problem: { code: string; detail: string } };

export interface Mapping {
  /** Undefined for a row of an export of ours that was not executed. */
  toLine(row: Row): Line | undefined;
  /** @throws Failure `invalid_request` when the columns of a field are missing */
  checkColumns(names: readonly string[]): void;
  /** Columns that no field takes. */
  ignored: Set<string>;
}

/** @throws Failure `invalid_request` */
export function makeMapping(options: ImportOptions): Mapping {
  const { map = {}, set = {}, values = {} } = options;
  for (const name of [map, set, values].flatMap(Object.keys))
    if (!FIELDS.includes(name))
      throw new Failure('invalid_request', `${name} is no field; fields are ${FIELDS.join(', ')}`);
  const readTime = timeReader(options);
  const readNumber = makeNumberReader(options);
  const ignored = new Set<string>();
  let isOwn: boolean | undefined;

  /** Of an export of ours; the operations that it names are of the database that it is from. */
  const columnOf = (field: string): string | undefined => {
    if (map[field] !== undefined) return map[field];
    if (isOwn && field === 'operation_id') return undefined;
    return isOwn && field === 'occurred_at' ? 'effective_at' : field;
  };
  function textOf(field: string, cells: Record<string, Json>): string | undefined {
    const column = columnOf(field);
    const cell = column === undefined ? undefined : own(cells, column);
    const isEmpty = cell === undefined || cell === null || cell === '';
    const text = isEmpty ? set[field] : cellText(cell);
    if (text === undefined) return undefined;
    return own(values[field], text) ?? text;
  }
  /** @throws RangeError for a cell that is nested too deeply */
  function reportOf(cells: Record<string, Json>) {
    const report: Record<string, Json> = {};
    for (const field of FIELDS) {
      const text = textOf(field, cells);
      if (text === undefined) continue;
      if (field === 'distinct') report[field] = truth(text);
      else if (NUMBERS.includes(field) || AMOUNTS.includes(field)) report[field] = readNumber(text);
      else report[field] = text;
    }
    if (typeof report.occurred_at === 'string') {
      const time = readTime(report.occurred_at);
      if ('code' in time) return { problem: time };
      report.occurred_at = time.text;
    }
    const text = canonicalJson(report);
    if (text.length <= REPORT_MAX) return { report: text };
    const detail = `the report is longer than ${REPORT_MAX} characters`;
    return { problem: { code: 'body_too_large', detail } };
  }
  const noteIgnored = (names: readonly string[]) => {
    const used = new Set(FIELDS.map(columnOf));
    for (const name of names)
      if (name !== '' && !used.has(name) && ignored.size < IGNORED_MAX)
        ignored.add(name.slice(0, NAME_MAX).replaceAll('\0', '\ufffd'));
  };
  return {
    ignored,
    checkColumns(names) {
      isOwn = isOwnExport(names);
      const named = Object.entries(map).filter(([, column]) => !names.includes(column));
      const missing = named.map(([field, column]) => `${column} (of ${field})`);
      const without = REQUIRED.filter(
        (field) => set[field] === undefined && !names.includes(columnOf(field) ?? field),
      );
      noteIgnored(names);
      const all = [...missing, ...without.filter((field) => map[field] === undefined)];
      if (all.length === 0) return;
      const detail = `missing columns: ${all.join(', ')}; name them with --map or --set`;
      throw new Failure('invalid_request', detail);
    },
    toLine(row) {
      if ('problem' in row) return row;
      const { line, values: cells } = row;
      isOwn ??= isOwnExport(Object.keys(cells));
      if (options.format === 'ndjson') noteIgnored(Object.keys(cells));
      if (isOwn && cells.outcome !== 'executed') return undefined;
      try {
        return { line, ...reportOf(cells) };
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        const detail = 'the line is nested too deeply';
        return { line, problem: { code: 'malformed_json', detail } };
      }
    },
  };
}

function timeReader({ time_zone: zone, date_order: order, unix_time: unix }: ImportOptions) {
  try {
    return makeTimeReader({ zone, order, unix });
  } catch {
    const detail = `time_zone: ${zone} is no time zone; name one such as Asia/Seoul`;
    throw new Failure('invalid_request', detail);
  }
}

/** The columns that only our exports have together. */
function isOwnExport(names: readonly string[]): boolean {
  return operationExport.columns.every((column) => names.includes(column));
}

/**
 * Without separators between groups of three figures, and without a fraction of zeros. What is not
 * of that form stays as it is, and is refused.
 */
function makeNumberReader({ thousands, decimal_sign: decimal }: ImportOptions) {
  const literal = (sign: string) => (sign === ' ' ? '[ \\u00a0\\u202f]' : `\\${sign}`);
  const group = thousands === undefined ? undefined : literal(thousands);
  const grouped = group === undefined ? undefined : new RegExp(`^\\d{1,3}(?:${group}\\d{3})+$`);
  const fraction = decimal === undefined ? undefined : new RegExp(`${literal(decimal)}0+$`);
  return (text: string): string => {
    const whole = fraction ? text.replace(fraction, '') : text;
    return group && grouped?.test(whole) ? whole.replace(new RegExp(group, 'g'), '') : whole;
  };
}

/** A member of its own: a text may be the name of one that every object has. */
function own<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined;
}

function cellText(cell: Json): string {
  return typeof cell === 'object' ? jsonText(cell) : String(cell);
}

/** Anything else is refused by the schema. */
function truth(text: string): Json {
  return own<boolean>({ true: true, false: false }, text) ?? text;
}
