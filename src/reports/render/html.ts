/** A report as one self-contained HTML page for print, without scripts or other files. */
import { isoText } from '../../kernel/clock.ts';
import { type Json, jsonText } from '../../kernel/json.ts';
import type { Movement, ReconciliationContent, RollForward } from '../content.ts';
import type { Finding, FindingList } from '../findings.ts';
import type { Report } from '../store.ts';
import { wordsOf } from './finding-words.ts';
import {
  ageText,
  bounded,
  type Column,
  grouped,
  type Html,
  html,
  spaced,
  table,
} from './html-elements.ts';
import { coveragePart, priorPeriodPart, tokensPart, walletsPart } from './html-sections.ts';
import { dayText, localText, withLocal } from './local-time.ts';
import { PAGE_STYLE } from './style.ts';

/** An operation, a drift, or a wallet; a hash is longer than an address. */
const LINKED = /\b(?:(op|drf)_[0-9a-f-]{36}|[0-9a-zA-Z]{42})\b/g;
const VIEWS: Record<string, string> = { op: 'operations', drf: 'drifts' };

/** @param consoleUrl of the console, to which operations, drifts and wallets link */
export function renderHtml(report: Report, consoleUrl?: string): string {
  const page = pageOf(report);
  if (consoleUrl === undefined) return page;
  const base = html`${consoleUrl.replace(/\/+$/, '')}`.html;
  return page.replace(
    LINKED,
    (id, kind) => `<a href="${base}/${VIEWS[kind] ?? 'wallets'}/${id}" target="_top">${id}</a>`,
  );
}

function pageOf(report: Report): string {
  const { content } = report;
  const [from, to] = [content.period.from, content.period.to].map((at) =>
    dayText(at, content.time_zone),
  );
  const title = `Reconciliation ${from} to ${to}`;
  const owner = content.organisation === null ? '' : `${content.organisation}: `;
  const columns = findingColumns(content.time_zone);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${owner}${title}: ${content.headline}</title>
<style>${{ html: PAGE_STYLE }}</style>
</head>
<body>
${headPart(report, title)}
${findingsPart('Breaks', content.breaks, 'There are no breaks.', columns)}
${findingsPart('Open items', content.open_items, 'There are no open items.', columns)}
${movementsPart(report)}
${rollForwardPart(content)}
${priorPeriodPart(content)}
${walletsPart(content)}
${tokensPart(content)}
${coveragePart(content)}
${signaturePart(report)}
</body>
</html>
`;
  return page.html;
}

function headPart({ content, id, requestedBy }: Report, title: string): Html {
  const { cut_off: cut, breaks, open_items: open, time_zone: zone, organisation } = content;
  const also =
    open.total === 0 ? '' : `, ${open.total} open ${open.total === 1 ? 'item' : 'items'}`;
  const mark = breaks.total === 0 ? 'verdict' : 'verdict breaks';
  const owner = organisation === null ? html`` : html`<p class="owner">${organisation}</p>\n`;
  return html`${owner}<h1>${title}</h1>
<p class="${mark}">${capital(content.headline)}${also}</p>
${provisionalPart(content)}
<dl>
<dt>Period</dt><dd>${localText(content.period.from, zone)} up to, not including,
${localText(content.period.to, zone)} (${zone})</dd>
<dt>Cut-off</dt><dd>ledger batch ${grouped(cut.batch)}, recorded ${localText(cut.known_at, zone)};
${grouped(cut.transactions)} transactions, ${grouped(cut.entries)} entries</dd>
<dt>Head of the hash chain</dt><dd><code>${cut.chain_head ?? 'none'}</code></dd>
<dt>As of</dt><dd>${localText(content.as_of, zone)}; ages are counted up to then</dd>
<dt>Report</dt><dd><code>${id}</code>, requested by ${requestedBy}</dd>
</dl>
<p class="note">Amounts are whole service tokens. All times are of the time zone ${zone}.</p>`;
}

function provisionalPart({ provisional, period, time_zone: zone }: ReconciliationContent): Html {
  if (!provisional) return html``;
  return html`<p><strong>Provisional</strong>: the period runs until ${localText(period.to, zone)},
and a later report of it has other figures.</p>`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const findingColumns = (zone: string): Column<Finding>[] => [
  {
    head: 'Finding',
    of: ({ kind, next }) => html`${capital(spaced(kind))}<div class="small">${next}</div>`,
  },
  {
    head: 'Subject and evidence',
    of: (finding) => {
      const words = wordsOf(finding, (at) => localText(at, zone));
      const { subject, evidence } = finding;
      return html`${words === null ? '' : html`<div>${words}</div>`}<code>${subject}</code>
<div class="small">${evidenceText(evidence, zone)}</div>`;
    },
  },
  { head: 'Amount', number: true, of: ({ amount }) => (amount === null ? '–' : grouped(amount)) },
  { head: 'Since', whole: true, of: ({ since }) => localText(since, zone) },
  { head: 'Age', whole: true, of: ({ age_s }) => ageText(age_s) },
  { head: 'Assignee', of: ({ assignee }) => assignee ?? '–' },
];

function findingsPart(
  title: string,
  list: FindingList,
  nothing: string,
  columns: Column<Finding>[],
): Html {
  return html`<h2>${title}</h2>
${table(list.listed, columns, nothing)}
${bounded(list.listed.length, list.total)}`;
}

/** `name: value` pairs without empty values. */
function evidenceText(evidence: Json, zone: string): string {
  if (evidence === null || typeof evidence !== 'object' || Array.isArray(evidence)) {
    return evidence === null ? '' : jsonText(evidence);
  }
  return Object.entries(evidence)
    .flatMap(([name, value]) => {
      if (value === null || value === '') return [];
      if (typeof value === 'string') return [`${spaced(name)}: ${withLocal(value, zone)}`];
      if (typeof value !== 'object') return [`${spaced(name)}: ${value}`];
      if (Array.isArray(value))
        return value.length === 0 ? [] : [`${spaced(name)}: ${listText(value)}`];
      const inner = evidenceText(value, zone);
      return inner === '' ? [] : [`${spaced(name)}: (${inner})`];
    })
    .join(' · ');
}

function listText(values: readonly Json[]): string {
  return values
    .map((value) => (typeof value === 'object' ? jsonText(value) : `${value}`))
    .join(', ');
}

function movementsPart({ id, content }: Report): Html {
  const { movements, fees, time_zone: zone } = content;
  const { before } = movements;
  const earlier: Column<Movement>[] = [
    { head: 'Operations before', number: true, of: (row) => grouped(row.before?.operations ?? 0) },
    { head: 'Amount before', number: true, of: (row) => grouped(row.before?.amount ?? '0') },
    { head: 'Fees before', number: true, of: (row) => grouped(row.before?.fees ?? '0') },
  ];
  const rows = table(
    movements.listed,
    [
      { head: 'Kind', of: ({ kind }) => spaced(kind) },
      { head: 'Reason', of: ({ reason_type }) => reason_type ?? '–' },
      { head: 'Operations', number: true, of: ({ operations }) => grouped(operations) },
      { head: 'Amount', number: true, of: ({ amount }) => grouped(amount) },
      { head: 'Fees', number: true, of: (row) => grouped(row.fees) },
      ...(before ? earlier : []),
    ],
    'Nothing took effect in this period.',
  );
  const compared =
    before &&
    html`<p class="note">Before: from ${localText(before.from, zone)} to
${localText(before.to, zone)}, as known now. Fees:
<strong class="number">${grouped(before.fees)}</strong>.</p>`;
  return html`<h2>Movements</h2>
${rows}
${bounded(movements.listed.length, movements.total)}
<p>Fees of the period: <strong class="number">${grouped(fees)}</strong></p>
${compared ?? ''}
<p class="note">The transactions behind each total: section <em>lines</em> of the CSV and the
workbook, or <code>npx tallyhook export lines ${id}</code>.</p>`;
}

function rollForwardColumns<Row extends RollForward>(first: Column<Row>[]): Column<Row>[] {
  const figure = (head: string, of: (row: Row) => string): Column<Row> => ({
    head,
    number: true,
    of: (row) => grouped(of(row)),
  });
  return [
    ...first,
    figure('Opening', (row) => row.opening),
    figure('of which prior period', (row) => row.prior_period),
    figure('+\u00a0In', (row) => row.incoming),
    figure('−\u00a0Out', (row) => row.outgoing),
    figure('−\u00a0Fees', (row) => row.fees),
    figure('=\u00a0Closing', (row) => row.closing),
  ];
}

function rollForwardPart(content: ReconciliationContent): Html {
  const { roll_forward, own_accounts: own, trial_balance: trial } = content;
  const kinds = table(
    roll_forward,
    rollForwardColumns<RollForward>([
      { head: 'Accounts', of: ({ name }) => spaced(name) },
      { head: 'Number', number: true, of: ({ accounts }) => grouped(accounts) },
    ]),
    'The ledger is empty.',
  );
  const single = table(
    own.listed,
    rollForwardColumns<RollForward & { observed: boolean }>([
      { head: 'Account', of: ({ name }) => html`<code>${name}</code>` },
      { head: 'Compared', of: ({ observed }) => (observed ? 'with its wallet' : 'unobserved') },
    ]),
    'No such account exists.',
  );
  return html`<h2>Roll-forward</h2>
${kinds}
<p class="note">Prior period: the part of the opening that the close of the period before did not
know; without one, what was recorded only after this period had begun. A reversal lowers the side
of the entry that it negates.</p>
<p>Trial balance: debit <strong class="number">${grouped(trial.debit)}</strong>, credit
<strong class="number">${grouped(trial.credit)}</strong>.</p>
<h3>Operators, fees and collection</h3>
${single}
${bounded(own.listed.length, own.total)}`;
}

function signaturePart({ hash, id, createdAt, content }: Report): Html {
  return html`<h2>Sign-off</h2>
<p>Report <code>${id}</code>, made ${localText(isoText(createdAt), content.time_zone)}.
SHA-256 of its content:</p>
<p><code>${hash}</code></p>
<div class="sign"><div>Prepared by, date</div><div>Approved by, date</div></div>`;
}
