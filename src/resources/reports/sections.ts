/**
 * The sections of a report as tables: a line per figure, finding, account or transaction. CSV, its
 * ZIP archive and the workbook are made of them. Columns with one meaning in several sections have
 * one name; any other field is a column by its own. Pure.
 */
import { jsonText } from '../../kernel/json.ts';
import type { Cell } from '../cells.ts';
import { amount, count, type Fields, instant, type Kind, text } from '../fields.ts';
import { bookingFields } from '../ledger/ledger.ts';
import type { Shown } from '../resource.ts';
import type { reportWithContent } from './content.ts';
import * as content from './content.ts';
import { type Finding, finding, inOrder, wordsOf } from './finding.ts';
import { numberOf, partiesOf, type reportLine } from './report.ts';

/** By the name of its column; what is not there has no cell. */
type Line = Readonly<Record<string, Cell>>;
export interface Section {
  name: string;
  /** Those that it uses, in order. */
  columns: string[];
  lines: Line[];
  /** The columns whose sums are figures of the report; none where rows are left out. */
  sums: readonly string[];
}

interface Column {
  field: string;
  name: string;
  kind: Kind;
}

/** Of a table of such things. @param names of columns that other sections share */
export function columnsOf(fields: Fields, names: Record<string, string> = {}): Column[] {
  return Object.entries(fields).flatMap(([field, { kind }]) =>
    kind === 'object' ? [] : [{ field, name: names[field] ?? field, kind }],
  );
}

const FIGURES = columnsOf({
  item: text(),
  detail: text(),
  count: count(),
  amount: amount(),
  fees: amount(),
  since: instant(),
  age_s: count(),
  next: text(),
});
const MOVEMENTS = columnsOf(content.movement.fields, {
  kind: 'item',
  reason_type: 'detail',
  operations: 'count',
});
const ACCOUNTS = columnsOf(content.ownAccount.fields, {
  name: 'item',
  observed: 'detail',
  accounts: 'count',
});
const { evidence, next, ...stated } = finding.fields;
const FINDINGS = columnsOf(
  { ...stated, words: text(), evidence, next },
  { kind: 'item', subject: 'detail' },
);
const IN_TRANSIT = columnsOf(content.inTransit.fields, { addr: 'item', operations: 'detail' });
const LINES = columnsOf(
  {
    kind: text(),
    reason_type: text(),
    operations: count(),
    amount: amount(),
    fees: amount(),
    effective_at: instant(),
    operation: text(),
    number: text(),
    payer: text(),
    payee: text(),
    reference: text(),
    ...bookingFields,
  },
  { kind: 'item', reason_type: 'detail', operations: 'count', effective_at: 'since' },
);
const { transaction: _, ...prior } = content.priorLine.fields;
const PRIOR = columnsOf(prior, { account: 'item', operation_id: 'detail', effective_at: 'since' });

const FLOWS = ['opening', 'prior_period', 'incoming', 'outgoing', 'fees', 'closing'];
const COUNTED = ['count', 'amount', 'fees'];
const SUMS: Readonly<Record<string, readonly string[]>> = {
  movements: COUNTED,
  'movements before': COUNTED,
  'breaks by kind': ['count'],
  'open items by kind': ['count'],
  'roll-forward': ['count', ...FLOWS],
  'own account': FLOWS,
  'prior period': ['amount'],
  'in transit': ['amount'],
  lines: COUNTED,
};

/** All columns, in order; `section` is before them where sections share a table. */
export const COLUMNS: readonly string[] = [
  ...new Set(
    [FIGURES.slice(0, 5), MOVEMENTS, ACCOUNTS, FINDINGS, LINES, IN_TRANSIT, PRIOR].flatMap((of) =>
      of.map(({ name }) => name),
    ),
  ),
];

/** The cells of rows, as they are shown. */
export function linesOf(columns: readonly Column[], rows: readonly object[]): Line[] {
  return rows.map((row) =>
    Object.fromEntries(
      columns.flatMap(({ field, name, kind }) => {
        const value = (row as Record<string, unknown>)[field] ?? null;
        return value === null ? [] : [[name, { kind, value }]];
      }),
    ),
  );
}

type Figure = {
  item: string;
  detail?: string;
  count?: number;
  amount?: string;
  fees?: string;
  since?: string | null;
  age_s?: number | null;
  next?: string;
};
const figures = (rows: readonly Figure[]) => linesOf(FIGURES, rows);

/** A list of bounded length. */
interface Bounded<Row = object> {
  listed: readonly Row[];
  /** Listed or not. */
  total: number;
}
type ListedLines = Bounded<Shown<typeof reportLine>>;
type Report = Shown<typeof reportWithContent>;

/**
 * The sections that have a line, in order.
 * @param time how sentences show an instant
 */
export function sectionsOf(
  report: Report,
  lines: ListedLines,
  time?: (iso: string) => string,
): Section[] {
  const { breaks, open_items: open, movements, ...of } = report.content;
  const all: Record<string, Line[]> = {
    report: headLines(report),
    'trial balance': figures([
      { item: 'debit', amount: of.trial_balance.debit },
      { item: 'credit', amount: of.trial_balance.credit },
    ]),
    fees: figures([
      { item: 'of the period', fees: of.fees },
      ...(movements.before ? [{ item: 'of the period before', fees: movements.before.fees }] : []),
    ]),
    movements: linesOf(MOVEMENTS, movements.listed),
    'movements before': linesOf(
      MOVEMENTS,
      movements.listed.flatMap(({ before, ...row }) => (before ? { ...row, ...before } : [])),
    ),
    'breaks by kind': figures(breaks.by_kind.map(({ kind, count }) => ({ item: kind, count }))),
    break: findingLines(breaks.listed, time),
    'open items by kind': figures(open.by_kind.map(({ kind, count }) => ({ item: kind, count }))),
    'open item': findingLines(open.listed, time),
    'roll-forward': linesOf(ACCOUNTS, of.roll_forward),
    'own account': linesOf(
      ACCOUNTS,
      of.own_accounts.listed.map((row) => ({
        ...row,
        observed: row.observed ? 'observed' : 'unobserved',
      })),
    ),
    'prior period': linesOf(
      PRIOR,
      of.prior_period.listed.map((line) => ({
        ...line,
        operation_id: line.operation_id ?? `transaction:${line.transaction}`,
      })),
    ),
    wallets: figures(
      Object.entries(content.statement.fields).map(([item, { kind }]) => ({
        item,
        [kind]: of.wallets.statement[item as keyof typeof of.wallets.statement],
      })),
    ),
    drift: driftLines(of.wallets),
    'in transit': linesOf(
      IN_TRANSIT,
      of.wallets.in_transit.listed.map((row) => ({ ...row, addr: `wallet:${row.addr}` })),
    ),
    coverage: coverageLines(of.coverage),
    'token supply': figures(of.tokens.supply.listed.flatMap(supplyFigures)),
    lines: linesOf(LINES, lines.listed.map(lineRow)),
  };
  const bounded: Record<string, Bounded> = {
    movements,
    'movements before': movements,
    break: breaks,
    'open item': open,
    'own account': of.own_accounts,
    'prior period': of.prior_period,
    'in transit': of.wallets.in_transit,
    'token supply': of.tokens.supply,
    lines,
  };
  return Object.entries(all).flatMap(([name, listed]) => {
    if (listed.length === 0) return [];
    const leftOut = leftOutText(bounded[name]);
    const next = name === 'lines' ? { next: exportLines(report) } : {};
    const last = leftOut === null ? [] : figures([{ item: NOT_LISTED, detail: leftOut, ...next }]);
    const rows = [...listed, ...last];
    const columns = COLUMNS.filter((column) => rows.some((line) => line[column]));
    const sums = leftOut === null ? (SUMS[name] ?? []) : [];
    return [{ name, columns, lines: rows, sums }];
  });
}

function headLines({ id, period_from, period_to, hash, content }: Report): Line[] {
  const { cut_off: cutOff } = content;
  const facts: [item: string, detail: string | null, kind?: Kind][] = [
    ['verdict', content.headline],
    ['state', content.provisional ? 'provisional' : 'final'],
    ['as of', content.as_of, 'instant'],
    ['organisation', content.organisation],
    ['time zone', content.time_zone],
    ['report', id],
    ['from', period_from, 'instant'],
    ['to', period_to, 'instant'],
    ['known at', cutOff.known_at, 'instant'],
    ['closed until', content.prior_period.closed_until, 'instant'],
    ['last batch', cutOff.batch, 'amount'],
    ['transactions', cutOff.transactions, 'amount'],
    ['entries', cutOff.entries, 'amount'],
    ['chain head', cutOff.chain_head],
    ['hash', hash],
  ];
  return facts.map(([item, value, kind = 'text']) => ({
    item: { kind: 'text', value: item },
    ...(value === null ? {} : { detail: { kind, value } }),
  }));
}

function findingLines(listed: readonly Finding[], time?: (iso: string) => string): Line[] {
  const rows = listed.map((one) => ({
    ...one,
    words: wordsOf(one, time && { time }),
    evidence: jsonText(inOrder(one.evidence)),
  }));
  return linesOf(FINDINGS, rows);
}

function driftLines({
  drift,
  drift_ages: ages,
  drifts_closed: closed,
  drift_resolution_median_s: median,
}: content.Reconciliation['wallets']): Line[] {
  return figures([
    { item: 'up', ...drift.up },
    { item: 'down', ...drift.down },
    ...ages.flatMap(({ bucket: detail, count, up, down }) => [
      { item: 'up', detail, amount: up },
      { item: 'down', detail, amount: down },
      { item: 'open', detail, count },
    ]),
    ...closed.map(({ state: detail, count }) => ({ item: 'ended', detail, count })),
    { item: 'median time to end', age_s: median },
  ]);
}

function coverageLines(coverage: content.Reconciliation['coverage']): Line[] {
  const caused = (item: 'inconclusive' | 'unopened') =>
    coverage[item].map(({ cause: detail, count }) => ({ item, detail, count }));
  const counts = ['in_scope', ...Object.keys(content.coverageCounts)] as (
    | 'in_scope'
    | keyof typeof content.coverageCounts
  )[];
  return figures([
    ...counts.map((item) => ({ item, count: coverage[item] })),
    ...caused('inconclusive'),
    ...caused('unopened'),
    { item: 'oldest check', since: coverage.oldest_check_at },
  ]);
}

function supplyFigures({ contract_id: contract, ...counts }: Shown<typeof content.supply>) {
  const { contract_id: _, ...fields } = content.supply.fields;
  const names = Object.keys(fields) as (keyof typeof counts)[];
  return names.map((detail) => ({
    item: `contract:${contract}`,
    detail,
    count: counts[detail],
  }));
}

/** A transaction of the period. */
function lineRow(line: Shown<typeof reportLine>) {
  return {
    ...line,
    ...partiesOf(line),
    operation: line.operation_id ?? `transaction:${line.transaction_id}`,
    number: numberOf(line.tx_app_no, line.tx_log_no),
  };
}

/** The item of the last line of a section that leaves rows out; no item of a list has spaces. */
export const NOT_LISTED = 'not listed here';

/** How many rows are left out, which is no number that a reader could sum; null when none are. */
export function leftOutText(list: Bounded | undefined): string | null {
  const count = list ? list.total - list.listed.length : 0;
  return list && count > 0 ? `${count} of ${list.total} rows` : null;
}

function exportLines({ id }: Report): string {
  return `npx tallyhook export lines ${id} --out lines.csv`;
}
