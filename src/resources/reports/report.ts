/** Reports: their formats, what lists show of them, their files, the lines behind their totals. */
import {
  amount,
  count,
  digits,
  flag,
  hash,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  text,
} from '../fields.ts';
import { bookingFields } from '../ledger/ledger.ts';
import { REPORT_VERDICTS } from '../ledger/period.ts';
import { type Row, resource, type Shown } from '../resource.ts';

/** What a format is called, and how its files are; first those that people read. */
export const FORMATS = {
  html: { title: 'HTML', mediaType: 'text/html', extension: 'html', isText: true },
  xlsx: {
    title: 'XLSX',
    mediaType: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    extension: 'xlsx',
    isText: false,
  },
  csv: { title: 'CSV', mediaType: 'text/csv', extension: 'csv', isText: true },
  'csv-zip': {
    title: 'CSV files',
    mediaType: 'application/zip',
    extension: 'zip',
    isText: false,
  },
  hledger: { title: 'hledger', mediaType: 'text/plain', extension: 'journal', isText: true },
  json: { title: 'JSON', mediaType: 'application/json', extension: 'json', isText: true },
} as const;
export type ReportFormat = keyof typeof FORMATS;
export const REPORT_FORMATS = Object.keys(FORMATS) as ReportFormat[];

/** A report without its content. */
export const report = resource(
  'Report',
  {
    id: id('rep', 'Our id of the report'),
    kind: text('Always reconciliation'),
    period_from: instant('Start of its period, included', { title: 'Period' }),
    period_to: instant('End of its period, excluded'),
    known_at: instant('Cut-off: time of the last ledger batch in the report', {
      title: 'Known until',
    }),
    requested_by: text('An owner, or `schedule`'),
    verdict: oneOf(REPORT_VERDICTS),
    breaks: count('How many breaks it found'),
    provisional: flag(
      'Made while its period still ran: a later report of the period has other figures',
    ),
    hash: hash('SHA-256 of the canonical content'),
    created_at: instant(undefined, { title: 'Made' }),
  },
  {
    columns: ['period_from', 'verdict', 'created_at', 'requested_by', 'hash'],
    filters: { kind: text(undefined, { max: 100 }) },
  },
);
export type ReportSummary = Row<typeof report>;

/** A file of a report in the folder or bucket of the setting. */
export const reportFile = resource('ReportFile', {
  format: oneOf(REPORT_FORMATS),
  path: nullable(text('Null until it is written')),
  written_at: nullable(instant()),
  problem: nullable(text('Why the last attempt failed; it is tried again')),
});

export const reportFiles = resource('ReportFiles', { data: list(object(reportFile)) });

/** A transaction behind the totals of a report; those of a kind and reason sum to its movements. */
export const reportLine = resource(
  'ReportLine',
  {
    effective_at: instant(),
    transaction_id: digits(),
    kind: text('Of the write, also for its reversal; of others opening, booking or reversal'),
    reason_type: nullable(text()),
    operations: count('What it counts in the movements: 1, for a reversal -1; 0 if of no write'),
    amount: amount('Of the write, or what another posting moves; negative for a reversal'),
    fees: amount('Requested by the write'),
    operation_id: nullable(text()),
    tx_app_no: nullable(digits()),
    tx_log_no: nullable(digits()),
    entries: list(object({ account: text(), amount: amount() })),
    reference: nullable(text()),
    ...bookingFields,
    reverses: nullable(digits('The transaction that it reverses')),
    effective_basis: text(),
    recorded_at: instant(),
  },
  {
    filters: {
      kind: text(undefined, { max: 100 }),
      account: text(),
    },
  },
);
export type ReportLine = Row<typeof reportLine>;

/** As a file has lines. */
export const LINE_COLUMNS = reportLine.columns.flatMap((name) =>
  name === 'entries' ? ['payer', 'payee'] : [name],
);

/** Who paid and who received. */
export function partiesOf({ entries }: Pick<Shown<typeof reportLine>, 'entries'>) {
  const accounts = (isPayer: boolean) =>
    entries
      .flatMap(({ account, amount }) => (amount.startsWith('-') === isPayer ? [account] : []))
      .join(' ');
  return { payer: accounts(true), payee: accounts(false) };
}

type Whole = string | bigint | null;

/** The number of the service, with the number of the app before it where that is known. */
export function numberOf(app: Whole, log: Whole): string | null {
  return log === null || app === null ? (log?.toString() ?? null) : `${app}/${log}`;
}
