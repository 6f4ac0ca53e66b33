/** Sections of the printed report: prior-period lines, wallets, tokens, coverage. */
import type { ReconciliationContent, WalletStatement } from '../content.ts';
import { ageText, bounded, grouped, type Html, html, spaced, table } from './html-elements.ts';
import { localText } from './local-time.ts';

const STATEMENT: [keyof WalletStatement, string][] = [
  ['ledger', 'Balance of the ledger at the end of the period'],
  ['after_period', 'Took effect after the period'],
  ['posted_after_observation', 'Posted after the newest observation'],
  ['not_yet_posted', 'Executed, not yet posted'],
  ['in_transit', 'In flight or unknown, and included'],
  ['drift_up', 'Open drifts up'],
  ['drift_down', 'Open drifts down'],
  ['unexplained_up', 'Not explained, up'],
  ['unexplained_down', 'Not explained, down'],
  ['observed', 'Observed balance'],
];

export function walletsPart({ wallets }: ReconciliationContent): Html {
  const { statement, in_transit } = wallets;
  const lines = STATEMENT.map(([name, text]) => {
    const kind = name === 'observed' ? 'total' : 'line';
    const amount = grouped(statement[name]);
    return html`<tr class="${kind}"><td class="text">${text}</td>
<td class="number">${amount}</td></tr>`;
  });
  const shown = table(
    in_transit.listed,
    [
      { head: 'Wallet', of: ({ addr }) => html`<code>${addr}</code>` },
      { head: 'Amount', number: true, of: ({ amount }) => grouped(amount) },
      {
        head: 'Open operations that the observation includes',
        of: ({ operations }) => html`<code>${operations.join(' ')}</code>`,
      },
    ],
    'No observation includes an open operation.',
  );
  return html`<h2>Ledger and service</h2>
<p>Over ${grouped(statement.wallets)} opened wallets:</p>
<table class="short">${lines}</table>
${driftsPart(wallets)}
<h3>Open operations already included</h3>
${shown}
${bounded(in_transit.listed.length, in_transit.total)}`;
}

export function priorPeriodPart(content: ReconciliationContent): Html {
  const { prior_period: prior, time_zone: zone } = content;
  if (prior.closed_until === null) return html``;
  const rows = table(
    prior.listed,
    [
      { head: 'Account', of: ({ account }) => html`<code>${account}</code>` },
      { head: 'Amount', number: true, of: ({ amount }) => grouped(amount) },
      { head: 'Kind', of: ({ kind, reason_type }) => spaced(reason_type ?? kind) },
      {
        head: 'Operation or transaction',
        of: (line) => html`<code>${line.operation_id ?? line.transaction}</code>`,
      },
      { head: 'Took effect', whole: true, of: (line) => localText(line.effective_at, zone) },
      { head: 'Recorded', whole: true, of: (line) => localText(line.recorded_at, zone) },
    ],
    'None.',
  );
  return html`<h2>Prior-period lines</h2>
<p>Took effect before ${localText(prior.closed_until, zone)}, and was recorded after the cut-off of
that close, ${localText(prior.known_at, zone)}:</p>
${rows}
${bounded(prior.listed.length, prior.total)}`;
}

function driftsPart(wallets: ReconciliationContent['wallets']): Html {
  const { drift, drift_ages: ages, drifts_closed: closed } = wallets;
  const ended = closed.map(({ state, count }) => `${count} ${state}`).join(', ');
  const median = wallets.drift_resolution_median_s;
  const rows = table(
    ages,
    [
      { head: 'Open drifts of this age', of: ({ bucket }) => bucket },
      { head: 'Number', number: true, of: ({ count }) => grouped(count) },
      { head: 'Up', number: true, of: ({ up }) => grouped(up) },
      { head: 'Down', number: true, of: ({ down }) => grouped(down) },
    ],
    'No drift is open.',
  );
  return html`<p>Open drifts: ${drift.up.count} up by ${grouped(drift.up.amount)},
${drift.down.count} down by ${grouped(drift.down.amount)}; never netted. Ended in the period:
${ended || 'none'}${median === null ? '' : `, after a median of ${ageText(median)}`}.</p>
${rows}`;
}

export function tokensPart({ tokens }: ReconciliationContent): Html {
  const { supply, writes } = tokens;
  const count = (head: string, of: (row: (typeof supply.listed)[number]) => number) => ({
    head,
    number: true as const,
    of: (row: (typeof supply.listed)[number]) => grouped(of(row)),
  });
  const rows = table(
    supply.listed,
    [
      { head: 'Contract', of: ({ contract_id }) => html`<code>${contract_id}</code>` },
      count('Opening', (row) => row.opening),
      count('+ Minted', (row) => row.minted),
      count('− Burned', (row) => row.burned),
      count('+ Found', (row) => row.found),
      count('− Missing', (row) => row.missing),
      count('+ Surplus', (row) => row.surplus),
      count('= Held', (row) => row.held),
    ],
    'No token is known.',
  );
  return html`<h2>Tokens</h2>
${rows}
${bounded(supply.listed.length, supply.total)}
<p>Operations with a hash: ${writes.settled} settled, ${writes.failed} failed,
${writes.pending} pending.</p>`;
}

export function coveragePart({ coverage, time_zone: zone }: ReconciliationContent): Html {
  const { inconclusive, unopened } = coverage;
  const lines: { name: string; count: number }[] = [
    { name: 'Checked', count: coverage.checked },
    { name: 'Stale', count: coverage.stale },
    { name: 'Never observed', count: coverage.never_observed },
    ...inconclusive.map(({ cause, count }) => ({ name: `Inconclusive: ${spaced(cause)}`, count })),
    ...unopened.map(({ cause, count }) => ({ name: `Unopened: ${spaced(cause)}`, count })),
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
