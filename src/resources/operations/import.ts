/** An import: a file of operations that were made elsewhere, and what became of its rows. */
import {
  byName,
  count,
  document,
  id,
  instant,
  json,
  list,
  nullable,
  object,
  oneOf,
  record,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';

/** First those that go on by themselves. */
export const IMPORT_STATES = [
  'staging',
  'checking',
  'recording',
  'ready',
  'refused',
  'done',
  'cancelled',
] as const;
export type ImportState = (typeof IMPORT_STATES)[number];

/** Of a row that is checked: `new` until it is recorded. */
export const ROW_RESULTS = ['new', 'recorded', 'known', 'refused'] as const;
export type RowResult = (typeof ROW_RESULTS)[number];

/** How files are written. */
export const FORMATS = ['csv', 'ndjson'] as const;
export const DELIMITERS = [',', ';', '\t', '|'] as const;
export const DATE_ORDERS = ['ymd', 'dmy', 'mdy'] as const;
export const UNIX_UNITS = ['s', 'ms'] as const;
/** Between groups of three figures. */
export const THOUSANDS = [',', '.', ' ', "'", '_'] as const;
export const DECIMAL_SIGNS = ['.', ','] as const;

/** What would be recorded, and whether balances prove it; stored as it is shown. */
export const importSummary = {
  period: nullable(document({ from: text(), to: text() }, 'Null when nothing is to be recorded')),
  kinds: byName(count(), 'How many are to be recorded of each kind'),
  accounts: list(
    document({ account: text(), movements: count(), in: text(), out: text() }),
    'Those that move most, at most 100',
  ),
  wallets: document(
    { touched: count(), proved: count(), unobserved: count(), failed: count() },
    'The balance proof of the wallets',
  ),
  failed: list(record(), 'The first 100 wallets whose balances contradict the file'),
};

export const imported = resource(
  'Import',
  {
    id: id('imp'),
    state: oneOf(
      IMPORT_STATES,
      '`ready`: may be recorded; `refused`: rows are refused, so nothing is recorded',
    ),
    file_name: text(),
    bytes: count('Length of the file'),
    sha256: text('Of the bytes of the file'),
    options: record('How its rows become reports'),
    owner: text(),
    key_id: id('key'),
    reason: nullable(text('Why it is recorded although balances contradict it')),
    created_at: instant(undefined, { title: 'Created' }),
    checked_at: nullable(instant('When its rows were checked: what was recorded by then is known')),
    finished_at: nullable(instant(undefined, { title: 'Finished' })),
    lines: count('Rows of the file'),
    skipped: count('Rows of an export of ours that were not executed; they are left out'),
    checked: count('Rows that are checked'),
    to_record: count('Rows that the check found to be new'),
    recorded: count('Rows that are recorded'),
    known: count('Rows that the daemon has, or that repeat an earlier row'),
    refused: count('Rows that are refused'),
    ignored_columns: list(text(), 'Columns that no field takes'),
    summary: nullable(document(importSummary, 'Null until it is checked')),
  },
  {
    columns: [
      'created_at',
      'id',
      'state',
      'file_name',
      'lines',
      'to_record',
      'recorded',
      'known',
      'refused',
      'owner',
    ],
    filters: { state: oneOf(IMPORT_STATES) },
  },
);

export const importRow = resource(
  'ImportRow',
  {
    n: count('Its place in the file, from 1'),
    line: count('The line of the file that it begins on'),
    result: nullable(oneOf(ROW_RESULTS, 'Null until it is checked')),
    operation_id: nullable(id('op', 'The operation that it is')),
    problem: nullable(object({ code: text(), detail: nullable(text()) }, 'Why it is refused')),
    report: nullable(json('The report that it becomes; null for one that cannot be read')),
  },
  { filters: { result: oneOf(ROW_RESULTS) } },
);
