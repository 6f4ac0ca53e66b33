/**
 * A report as CSV (RFC 4180): one table with one line per figure, finding or account. Text that a
 * spreadsheet would run as a formula gets a leading apostrophe. Numbers are exact, although
 * spreadsheets round beyond 15 digits.
 */

import { isoText } from '../../kernel/clock.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Movement, RollForward } from '../content.ts';
import type { Finding } from '../findings.ts';
import type { ReportLines } from '../queries/lines.ts';
import type { ReportLine } from '../queries/lines-store.ts';
import type { Report } from '../store.ts';
import { wordsOf } from './finding-words.ts';
import { numberOf } from './journal.ts';

const COLUMNS = [
  'section',
  'item',
  'detail',
  'count',
  'amount',
  'fees',
  'opening',
  'prior_period',
  'incoming',
  'outgoing',
  'closing',
  'since',
  'age_s',
  'assignee',
  'words',
  'evidence',
  'next',
  'operation',
  'number',
  'payer',
  'payee',
  'reference',
] as const;
type Column = (typeof COLUMNS)[number];
/** One figure, finding or account; `section` is always there. */
export type Line = Partial<Record<Column, string | number | null>>;

export function renderCsv(report: Report, lines: ReportLines): string {
  return csvText(COLUMNS, linesOf(report, lines));
}

export function csvText(columns: readonly Column[], lines: readonly Line[]): string {
  const rows = lines.map((line) => columns.map((column) => csvCell(line[column] ?? null)));
  return [columns, ...rows].map((cells) => `${cells.join(',')}\r\n`).join('');
}

type TimeText = (iso: string) => string;

/**
 * The lines by section, with the columns that each uses beside its name.
 * @param timeText how sentences show an instant
 */
export function sectionsOf(report: Report, lines: ReportLines, timeText?: TimeText) {
  const sections = Map.groupBy(linesOf(report, lines, timeText), ({ section }) => String(section));
  return [...sections].map(([section, lines]) => ({
    section,
    columns: COLUMNS.filter(
      (column) => column !== 'section' && lines.some((line) => line[column] != null),
    ),
    lines,
  }));
}

/** The lines of a report, in the order of its sections. */
function linesOf(report: Report, lines: ReportLines, timeText?: TimeText): Line[] {
  const { content } = report;
  const { movements, own_accounts: own, breaks, open_items: open } = content;
  return [
    ...headLines(report),
    ...breaks.by_kind.map(({ kind, count }) => ({ section: 'breaks by kind', item: kind, count })),
    ...breaks.listed.map((finding) => findingLine('break', finding, timeText)),
    ...open.by_kind.map(({ kind, count }) => ({
      section: 'open items by kind',
      item: kind,
      count,
    })),
    ...open.listed.map((finding) => findingLine('open item', finding, timeText)),
    ...movementLines('movements', movements.listed),
    ...movementLines(
      'movements before',
      movements.listed.flatMap(({ before, ...row }) => (before ? { ...row, ...before } : [])),
    ),
    ...content.roll_forward.map((row) => rollForwardLine('roll-forward', row)),
    ...own.listed.map((row) => ({
      ...rollForwardLine('own account', row),
      detail: row.observed ? 'observed' : 'unobserved',
    })),
    ...content.prior_period.listed.map((line) => ({
      section: 'prior period',
      item: line.account,
      detail: line.operation_id ?? `transaction:${line.transaction}`,
      amount: line.amount,
      since: line.effective_at,
    })),
    ...walletLines(report),
    ...content.tokens.supply.listed.flatMap(({ contract_id, ...counts }) =>
      Object.entries(counts).map(([detail, count]) => ({
        section: 'token supply',
        item: `contract:${contract_id}`,
        detail,
        count,
      })),
    ),
    ...lines.listed.map(lineOf),
    ...leftOutOf(report, lines),
  ];
}

/** A transaction of the period; those of a kind and reason sum to its movements. */
function lineOf(line: ReportLine): Line {
  const { kind: item, reasonType: detail, operations: count, entries } = line;
  const accounts = (isPayer: boolean) =>
    entries.flatMap(({ account, amount }) => (amount < 0n === isPayer ? [account] : [])).join(' ');
  return {
    section: 'lines',
    item,
    detail,
    count,
    amount: `${line.amount}`,
    fees: `${line.fees}`,
    since: isoText(line.effectiveAt),
    operation: line.operationId ?? `transaction:${line.transaction}`,
    number: numberOf(line),
    payer: accounts(true),
    payee: accounts(false),
    reference: line.reference,
  };
}

function leftOutOf({ id }: Report, { listed, total }: ReportLines): Line[] {
  const count = total - listed.length;
  const next = `npx tallyhook export lines ${id} --out lines.csv`;
  return count > 0 ? [{ section: 'lines', item: 'not listed here', count, next }] : [];
}

function movementLines(section: string, movements: readonly Movement[]): Line[] {
  return movements.map(({ kind, reason_type, operations, amount, fees }) => ({
    section,
    item: kind,
    detail: reason_type,
    count: operations,
    amount,
    fees,
  }));
}

function headLines({ id, content, hash, periodFrom, periodTo }: Report): Line[] {
  const { trial_balance: trial, cut_off } = content;
  const facts: [string, string | null][] = [
    ['verdict', content.headline],
    ['state', content.provisional ? 'provisional' : 'final'],
    ['as of', content.as_of],
    ['organisation', content.organisation],
    ['time zone', content.time_zone],
    ['report', id],
    ['from', isoText(periodFrom)],
    ['to', isoText(periodTo)],
    ['known at', cut_off.known_at],
    ['closed until', content.prior_period.closed_until],
    ['last batch', cut_off.batch],
    ['transactions', cut_off.transactions],
    ['entries', cut_off.entries],
    ['chain head', cut_off.chain_head],
    ['hash', hash],
  ];
  return [
    ...facts.map(([item, detail]) => ({ section: 'report', item, detail })),
    { section: 'trial balance', item: 'debit', amount: trial.debit },
    { section: 'trial balance', item: 'credit', amount: trial.credit },
    { section: 'movements', item: 'all fees', fees: content.fees },
    ...(content.movements.before
      ? [{ section: 'movements before', item: 'all fees', fees: content.movements.before.fees }]
      : []),
  ];
}

function walletLines({ content: { wallets, coverage } }: Report): Line[] {
  const { statement, drift, drift_ages: ages, drifts_closed: closed, in_transit } = wallets;
  const { inconclusive, unopened, oldest_check_at, ...counts } = coverage;
  return [
    ...Object.entries(statement).map(([item, value]) => ({
      section: 'wallets',
      item,
      ...(typeof value === 'number' ? { count: value } : { amount: value }),
    })),
    { section: 'drift', item: 'up', ...drift.up },
    { section: 'drift', item: 'down', ...drift.down },
    ...ages.flatMap(({ bucket: detail, count, up, down }) => [
      { section: 'drift', item: 'up', detail, amount: up },
      { section: 'drift', item: 'down', detail, amount: down },
      { section: 'drift', item: 'open', detail, count },
    ]),
    ...closed.map(({ state, count }) => ({
      section: 'drift',
      item: 'ended',
      detail: state,
      count,
    })),
    { section: 'drift', item: 'median time to end', age_s: wallets.drift_resolution_median_s },
    ...in_transit.listed.map(({ addr, amount, operations }) => ({
      section: 'in transit',
      item: `wallet:${addr}`,
      detail: operations.join(' '),
      amount,
    })),
    ...Object.entries(counts).map(([item, count]) => ({ section: 'coverage', item, count })),
    ...inconclusive.map(({ cause, count }) => ({
      section: 'coverage',
      item: 'inconclusive',
      detail: cause,
      count,
    })),
    ...unopened.map(({ cause, count }) => ({
      section: 'coverage',
      item: 'unopened',
      detail: cause,
      count,
    })),
    { section: 'coverage', item: 'oldest check', since: oldest_check_at },
  ];
}

function findingLine(section: string, finding: Finding, timeText?: TimeText): Line {
  const { kind: item, subject: detail, amount, since, age_s, assignee, evidence, next } = finding;
  return {
    section,
    item,
    detail,
    amount,
    since,
    age_s,
    assignee,
    words: wordsOf(finding, timeText),
    evidence: jsonText(evidence),
    next,
  };
}

function rollForwardLine(section: string, row: RollForward): Line {
  const { name: item, accounts: count, ...figures } = row;
  return { section, item, count, ...figures };
}

/**
 * What a spreadsheet reads as the start of a formula: also behind a line end, and behind the
 * separators that it splits lines at in some countries, in spite of quotes.
 */
const FORMULA = /(^|[;|\t\r\n])([ "]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Quotes a cell where needed; a ' keeps spreadsheets from running text as a formula. */
export function csvCell(value: string | number | null): string {
  if (value === null) return '';
  const text = String(value);
  const isNumber = /^-?\d+$/.test(text);
  const safe = isNumber ? text : text.replace(FORMULA, "$1$2'").replace(/^(?=[\t\r])/, "'");
  return /[",;|\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
