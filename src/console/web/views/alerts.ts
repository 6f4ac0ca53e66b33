/** The alerts that are raised now, each in a sentence. */
import type { alert } from '../../../resources/admin/alert.ts';
import { cellText } from '../../../resources/cells.ts';
import type { Shown } from '../../../resources/resource.ts';
import { type Page, useData } from '../kit/api.ts';
import { Card, Time } from '../kit/elements.ts';
import { amountText, durationText, shortText } from '../kit/format.ts';
import { html } from '../kit/html.ts';

type Alert = Shown<typeof alert>;

export function AlertsCard() {
  const { data } = useData<Page<Alert>>('/api/alerts?limit=20', 10_000);
  if (!data || data.data.length === 0) return null;
  return html`<${Card} tone="bad" title="Alerts">
    <ul class="timeline">
      ${data.data.map(
        (alert) => html`<li key=${alert.id}>
          <${Time} at=${alert.raised_at} />
          <span>${sentenceOf(alert)}</span>
        </li>`,
      )}
    </ul>
    ${data.next_cursor && html`<p class="muted">More are listed by /api/alerts.</p>`}
  <//>`;
}

function sentenceOf({ rule, detail }: Alert): unknown {
  const text = (name: string) => String(detail[name] ?? '');
  const operation = detail.operation_id
    ? html`<a href=${`/operations/${text('operation_id')}`}>${shortText(text('operation_id'))}</a>`
    : 'An operation';
  switch (detail.kind ?? rule) {
    case 'observer.late':
      return 'Wallets or tokens are not polled as often as promised.';
    case 'operation.stuck':
      return html`${operation} was executed and does not settle.`;
    case 'ledger.fee_rule_contradicted':
      return html`Balances show that fees are ${text('observed').replace('_', ' ')}, first with
        ${' '}${operation}: change the setting ledger.fee_mode.`;
    case 'wallet.vanished':
      return html`The service no longer shows wallet
        ${' '}<a href=${`/wallets/${text('addr')}`}>${shortText(text('addr'))}</a>, of which the
        ledger holds a balance.`;
    case 'unknown_older':
      return html`${operation} has had an unknown outcome for too long (${rule}).`;
    default:
      return html`${rule}: ${detailText(detail)}`;
  }
}

/** Names and values of what a rule found. */
function detailText(detail: Record<string, unknown>): string {
  return Object.entries(detail)
    .filter(([name, value]) => value !== null && !['alert_id', 'kind', 'rule'].includes(name))
    .map(([name, value]) => {
      const text = cellText(value);
      const shown = /^-?\d+$/.test(text)
        ? name.endsWith('_ms')
          ? durationText(Number(text))
          : amountText(text)
        : shortText(text);
      return `${name.replaceAll('_', ' ')} ${shown}`;
    })
    .join(', ');
}
