/** A report as one self-contained HTML page for print, without scripts or other files. */
import { isoText } from '../../kernel/clock.ts';
import { isObject, type Json, jsonText } from '../../kernel/json.ts';
import { amount, count, titleOf } from '../../resources/fields.ts';
import { signOff } from '../../resources/ledger/period.ts';
import { dayText, localText, withLocal } from '../../resources/local-time.ts';
import type { Report } from '../../resources/reports/content.ts';
import * as content from '../../resources/reports/content.ts';
import {
  BREAKS,
  type Finding,
  type FindingList,
  finding,
  inOrder,
  nextOnPaper,
  wordsOf,
} from '../../resources/reports/finding.ts';
import { resource } from '../../resources/resource.ts';
import type { ClosedPeriod } from '../periods/store.ts';
import {
  ageText,
  bounded,
  capital,
  grouped,
  groupedText,
  type Html,
  html,
  spaced,
  tableOf,
} from './html-elements.ts';

type Content = content.Reconciliation;

/** An operation, a drift, or a wallet; a hash is longer than an address. */
const LINKED = /\b(?:(op|drf)_[0-9a-f-]{36}|[0-9a-zA-Z]{42})\b/g;
const VIEWS: Record<string, string> = { op: 'operations', drf: 'drifts' };

interface Shown {
  /** Of the console, to which operations, drifts and wallets link; without a slash at its end. */
  consoleUrl?: string | undefined;
  /** The close whose report it is. */
  closed?: ClosedPeriod | undefined;
}

export function renderHtml(report: Report, { consoleUrl, closed }: Shown = {}): string {
  const page = pageOf(report, closed);
  if (consoleUrl === undefined) return page;
  const base = html`${consoleUrl}`.html;
  return page.replace(
    LINKED,
    (id, kind) => `<a href="${base}/${VIEWS[kind] ?? 'wallets'}/${id}" target="_top">${id}</a>`,
  );
}

function pageOf(report: Report, closed: ClosedPeriod | undefined): string {
  const { content } = report;
  const [from, to] = [content.period.from, content.period.to].map((at) =>
    dayText(at, content.time_zone),
  );
  const title = `Reconciliation ${from} to ${to}`;
  const owner = content.organisation === null ? '' : `${content.organisation}: `;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${owner}${title}: ${verdictOf(content, closed)}</title>
<style>${{ html: PAGE_STYLE }}</style>
</head>
<body>
<article class="report">
${headPart(report, title, closed)}
${findingsPart('Breaks', content.breaks, content.time_zone)}
${findingsPart('Open items', content.open_items, content.time_zone)}
${movementsPart(report)}
${rollForwardPart(content)}
${priorPeriodPart(content)}
${walletsPart(content)}
${tokensPart(content)}
${coveragePart(content)}
${signaturePart(report, closed)}
${detailsPart(content)}
</article>
</body>
</html>
`;
  return page.html;
}

/** A period in force closed only with each of its breaks signed off. */
function verdictOf(content: Content, closed: ClosedPeriod | undefined): string {
  const open = content.open_items.total;
  const also = open === 0 ? '' : `, ${itemsOf(open, 'open ')}`;
  const inForce = closed?.reopenedBy === null ? closed.signOffs : [];
  const signedOff = inForce.filter(({ kind }) => kind in BREAKS).length;
  return signedOff === 0
    ? `${content.headline}${also}`
    : `balanced with ${itemsOf(signedOff)} signed off${also}`;
}

const itemsOf = (n: number, before = '') => `${n} ${before}${n === 1 ? 'item' : 'items'}`;

function reopenedPart(closed: ClosedPeriod | undefined, zone: string): Html {
  if (!closed || closed.reopenedBy === null) return html``;
  const { reopenedBy, reopenedAt, reopenReason } = closed;
  return html`<p><strong>Reopened</strong> by ${reopenedBy},
${localText(isoText(reopenedAt ?? 0), zone)}: ${reopenReason ?? ''}.
This report is no longer in force.</p>`;
}

function headPart(
  { content, id, requestedBy }: Report,
  title: string,
  closed: ClosedPeriod | undefined,
): Html {
  const { cut_off: cut, breaks, time_zone: zone, organisation } = content;
  const isSigned = closed?.reopenedBy === null;
  const mark = breaks.total === 0 ? 'verdict' : isSigned ? 'verdict signed' : 'verdict breaks';
  const owner = organisation === null ? html`` : html`<p class="owner">${organisation}</p>\n`;
  return html`${owner}<h1>${title}</h1>
<p class="${mark}">${capital(verdictOf(content, closed))}</p>
${reopenedPart(closed, zone)}
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

function provisionalPart({ provisional, period, time_zone: zone }: Content): Html {
  if (!provisional) return html``;
  return html`<p><strong>Provisional</strong>: the period runs until ${localText(period.to, zone)},
and a later report of it has other figures.</p>`;
}

function findingsPart(title: string, list: FindingList, zone: string): Html {
  const own = {
    kind: ({ kind }: Finding) => capital(spaced(kind)),
    subject: (one: Finding) =>
      wordsOf(one, { time: (at) => localText(at, zone), amount: groupedText }) ??
      html`<code>${one.subject}</code>`,
  };
  const nothing = `There are no ${title.toLowerCase()}.`;
  return html`<h2>${title}</h2>
${tableOf(finding, list.listed, { zone, own, nothing })}
${bounded(list)}`;
}

/** What each break and open item is known by, and what comes next: one after the other. */
function detailsPart({ breaks, open_items: open, time_zone: zone }: Content): Html {
  const found = [...breaks.listed, ...open.listed];
  if (found.length === 0) return html``;
  const parts = found.map(
    (
      one,
    ) => html`<div class="detail"><p>${capital(spaced(one.kind))}: <code>${one.subject}</code></p>
<p class="small">${nextOnPaper(one.kind)}.</p>
<p class="small">${evidenceText(inOrder(one.evidence), zone)}</p></div>
`,
  );
  return html`<h2>Appendix: details of breaks and open items</h2>
${parts}`;
}

/** `name: value` pairs without empty values. */
function evidenceText(evidence: Json, zone: string): string {
  if (!isObject(evidence)) return evidence === null ? '' : jsonText(evidence);
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

const { before: _, ...sums } = content.movement.fields;
/** Movements beside those of the period before. */
const compared = resource('ComparedMovement', {
  ...sums,
  operations_before: count(),
  amount_before: amount(),
  fees_before: amount(),
});

function movementsPart({ id, content: { movements, fees, time_zone: zone } }: Report): Html {
  const { before, listed } = movements;
  const rows = listed.map((row) => ({
    ...row,
    operations_before: row.before?.operations ?? 0,
    amount_before: row.before?.amount ?? '0',
    fees_before: row.before?.fees ?? '0',
  }));
  const shown = tableOf(before ? compared : content.movement, rows, {
    zone,
    own: { kind: ({ kind }) => spaced(kind) },
    nothing: 'Nothing took effect in this period.',
  });
  const note =
    before &&
    html`<p class="note">Before: from ${localText(before.from, zone)} to
${localText(before.to, zone)}, as known now. Fees:
<strong class="number">${grouped(before.fees)}</strong>.</p>`;
  return html`<h2>Movements</h2>
${shown}
${bounded(movements)}
<p>Fees of the period: <strong class="number">${grouped(fees)}</strong></p>
${note ?? ''}
<p class="note">The transactions behind each total: section <em>lines</em> of the CSV and the
workbook of report <code>${id}</code>.</p>`;
}

function rollForwardPart(of: Content): Html {
  const { roll_forward, own_accounts: owned, trial_balance: trial, time_zone: zone } = of;
  const kinds = tableOf(content.rollForward, roll_forward, {
    zone,
    own: { name: ({ name }) => spaced(name) },
    nothing: 'The ledger is empty.',
  });
  const single = tableOf(content.ownAccount, owned.listed, {
    zone,
    own: {
      name: ({ name }) => html`<code>${name}</code>`,
      observed: ({ observed }) => (observed ? 'with its wallet' : 'unobserved'),
    },
    nothing: 'No such account exists.',
  });
  return html`<h2>Roll-forward</h2>
${kinds}
<p class="note">Prior period: the part of the opening that the close of the period before did not
know; without one, what was recorded only after this period had begun. A reversal lowers the side
of the entry that it negates.</p>
<p>Trial balance: debit <strong class="number">${grouped(trial.debit)}</strong>, credit
<strong class="number">${grouped(trial.credit)}</strong>.</p>
<h3>Operators, fees and collection</h3>
${single}
${bounded(owned)}`;
}

function walletsPart({ wallets, time_zone: zone }: Content): Html {
  const { statement, in_transit } = wallets;
  const { wallets: _, ...amounts } = content.statement.fields;
  const lines = Object.entries(amounts).map(([name, field]) => {
    const amount = grouped(statement[name as keyof typeof amounts]);
    const mark = name === 'observed' ? 'total' : 'line';
    return html`<tr class="${mark}"><td class="text">${titleOf(name, field)}</td>
<td class="number">${amount}</td></tr>`;
  });
  const shown = tableOf(content.inTransit, in_transit.listed, {
    zone,
    own: {
      addr: ({ addr }) => html`<code>${addr}</code>`,
      operations: ({ operations }) => html`<code>${operations.join(' ')}</code>`,
    },
    nothing: 'No observation includes an open operation.',
  });
  return html`<h2>Ledger and service</h2>
<p>Over ${grouped(statement.wallets)} opened wallets:</p>
<table class="short">${lines}</table>
${driftsPart(wallets, zone)}
<h3>Open operations already included</h3>
${shown}
${bounded(in_transit)}`;
}

function priorPeriodPart({ prior_period: prior, time_zone: zone }: Content): Html {
  if (prior.closed_until === null) return html``;
  const rows = tableOf(content.priorLine, prior.listed, {
    zone,
    own: {
      account: ({ account }) => html`<code>${account}</code>`,
      kind: ({ kind, reason_type: reason }) => spaced(reason ?? kind),
      operation_id: (line) => html`<code>${line.operation_id ?? line.transaction}</code>`,
    },
    nothing: 'None.',
  });
  return html`<h2>Prior-period lines</h2>
<p>Took effect before ${localText(prior.closed_until, zone)}, and was recorded after the cut-off of
that close, ${localText(prior.known_at, zone)}:</p>
${rows}
${bounded(prior)}`;
}

function driftsPart(wallets: Content['wallets'], zone: string): Html {
  const { drift, drift_ages: ages, drifts_closed: closed } = wallets;
  const ended = closed.map(({ state, count }) => `${count} ${state}`).join(', ');
  const median = wallets.drift_resolution_median_s;
  const rows = tableOf(content.driftAge, ages, { zone, nothing: 'No drift is open.' });
  return html`<p>Open drifts: ${drift.up.count} up by ${grouped(drift.up.amount)},
${drift.down.count} down by ${grouped(drift.down.amount)}; never netted. Ended in the period:
${ended || 'none'}${median === null ? '' : `, after a median of ${ageText(median)}`}.</p>
${rows}`;
}

function tokensPart({ tokens: { supply, writes }, time_zone: zone }: Content): Html {
  const rows = tableOf(content.supply, supply.listed, {
    zone,
    own: { contract_id: ({ contract_id: contract }) => html`<code>${contract}</code>` },
    nothing: 'No token is known.',
  });
  return html`<h2>Tokens</h2>
${rows}
${bounded(supply)}
<p>Operations with a hash: ${writes.settled} settled, ${writes.failed} failed,
${writes.pending} pending.</p>`;
}

function coveragePart({ coverage, time_zone: zone }: Content): Html {
  const counts = Object.entries(content.coverageCounts);
  const caused = (name: 'inconclusive' | 'unopened') =>
    coverage[name].map(({ cause, count }) => ({
      name: `${titleOf(name, {})}: ${spaced(cause)}`,
      count,
    }));
  const lines = [
    ...counts.map(([name, field]) => ({
      name: titleOf(name, field),
      count: coverage[name as keyof typeof content.coverageCounts],
    })),
    ...caused('inconclusive'),
    ...caused('unopened'),
  ];
  const rows = lines.map(
    ({ name, count }) =>
      html`<tr><td class="text">${name}</td><td class="number">${grouped(count)}</td></tr>`,
  );
  return html`<h2>Coverage</h2>
<table class="short">${rows}
<tr class="total"><td class="text">Wallets in scope</td>
<td class="number">${grouped(coverage.in_scope)}</td></tr></table>
<p>Start of the oldest check: ${localText(coverage.oldest_check_at, zone)}.</p>`;
}

const signedItem = resource('SignOff', signOff);

/** Who closed and signed it, with what they signed off; without a close, lines to sign on. */
function signaturePart(report: Report, closed: ClosedPeriod | undefined): Html {
  const { hash, id, createdAt, content } = report;
  const zone = content.time_zone;
  const names = closed ? closedPart(closed, zone) : html``;
  const lines =
    closed?.signedBy === null || !closed
      ? html`<div class="sign"><div>Prepared by, date</div><div>Approved by, date</div></div>`
      : html``;
  return html`<h2>Sign-off</h2>
${names}
<p>Report <code>${id}</code>, made ${localText(isoText(createdAt), zone)}.
SHA-256 of its content:</p>
<p><code>${hash}</code></p>
${lines}`;
}

function closedPart(closed: ClosedPeriod, zone: string): Html {
  const { closedBy, closedAt, signedBy, signedAt } = closed;
  const at = (instant: number | null) => localText(isoText(instant ?? 0), zone);
  const items = tableOf(signedItem, closed.signOffs, {
    zone,
    own: {
      kind: ({ kind }) => capital(spaced(kind)),
      subject: ({ subject }) => html`<code>${subject}</code>`,
    },
    nothing: 'Nothing was signed off.',
  });
  return html`<dl>
<dt>Closed by</dt><dd>${closedBy}, ${at(closedAt)}</dd>
<dt>Signed by</dt><dd>${signedBy === null ? 'no one yet' : html`${signedBy}, ${at(signedAt)}`}</dd>
</dl>
<h3>Signed off</h3>
${items}`;
}

/** Also for the console, which shows the report as a part of its page. */
const PAGE_STYLE = `
body { background: #fff; }
.report { color-scheme: light; margin: 2rem auto; max-width: 66rem; padding: 0 1.25rem;
  color: #1a1a1a; background: #fff;
  font: 15px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 1px solid #1a1a1a; }
h3 { font-size: .95rem; margin: 1.1rem 0 .35rem; }
p { margin: .35rem 0; }
.owner { font-weight: 600; }
.verdict { font-size: 1.6rem; font-weight: 650; margin: .9rem 0 .6rem; padding: .5rem .8rem;
  border-left: .4rem solid #1b6e3c; background: #eef6f0; }
.verdict.signed { border-color: #8a6100; background: #fdf6e6; }
.verdict.breaks { border-color: #a3231d; background: #fbefee; }
.nothing, .note { color: #4a4a4a; }
.note { font-size: .88rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: .5rem 0; }
dt { color: #4a4a4a; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0; font-size: .88rem; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid #777; vertical-align: bottom; }
th, td { padding: .28rem .9rem .28rem 0; }
th:last-child, td:last-child { padding-right: 0; }
td { border-bottom: 1px solid #ddd; vertical-align: top; }
td.text { overflow-wrap: anywhere; }
td.text { min-width: 9rem; }
td.text:first-child { min-width: 10rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.detail { margin: .6rem 0; break-inside: avoid; } .detail p { margin: .1rem 0; }
.whole { white-space: nowrap; }
.short { width: auto; min-width: 20rem; }
tr.total td { font-weight: 650; border-top: 1px solid #777; }
code { font: .86em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.small { font-size: .82rem; color: #4a4a4a; overflow-wrap: anywhere; }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem; margin-top: 3.2rem; }
.sign div { border-top: 1px solid #1a1a1a; padding-top: .3rem; font-size: .88rem; }
@media print {
  .report { margin: 0; max-width: none; padding: 0; font-size: 10.5pt; }
  .wide { overflow: visible; } table { font-size: 8.5pt; }
  th, td { padding-right: .5rem; } .small { font-size: 7.5pt; line-height: 1.3; }
  td.text, td.text:first-child { min-width: 5rem; }
  h2, h3 { break-after: avoid; } tr, .sign { break-inside: avoid; }
  thead { display: table-header-group; }
  .verdict { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
@page { size: A4; margin: 16mm 14mm;
  @bottom-right { content: "Page " counter(page) " of " counter(pages); font: 8pt sans-serif; } }
`;
