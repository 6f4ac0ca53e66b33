/** The alerts that are raised now, each in a sentence. */
import type { alert } from '../../../resources/admin/alert.ts';
import { cellText } from '../../../resources/cells.ts';
import type { Shown } from '../../../resources/resource.ts';
import { type Page, useData } from '../kit/api.ts';
import { Card, Failed, Time, WalletLink } from '../kit/elements.ts';
import { amountText, durationText, shortText, signedText } from '../kit/format.ts';
import { html } from '../kit/html.ts';

type Alert = Shown<typeof alert>;

const SHOWN_MAX = 500;

/** Newest first; those of one rule about one wallet in one line. */
export function AlertsCard() {
  const path = `/api/alerts?limit=${SHOWN_MAX}`;
  const { data, problem, reload } = useData<Page<Alert>>(path, 10_000);
  if (!data) return html`<${Failed} problem=${problem} retry=${reload} />`;
  if (data.data.length === 0) return null;
  const newest = data.data.toSorted((a, b) => b.raised_at.localeCompare(a.raised_at));
  const groups = Map.groupBy(newest, ({ id, rule, detail }) => `${rule} ${detail.addr ?? id}`);
  return html`<${Card} tone="bad" title="Alerts">
    <ul class="timeline">
      ${[...groups].map(
        ([of, [alert, ...older]]) => html`<li key=${of}>
          <${Time} at=${alert?.raised_at} />
          <div>
            <div>${alert && sentenceOf(alert)}</div>
            ${
              older.length > 0 &&
              html`<details>
                <summary>${older.length} more of this rule and wallet</summary>
                ${older.map(
                  (one) => html`<div>
                      <${Time} at=${one.raised_at} /> ${sentenceOf(one)}
                    </div>`,
                )}
              </details>`
            }
          </div>
        </li>`,
      )}
    </ul>
    ${data.next_cursor && html`<p class="muted">Newer ones are listed by /api/alerts.</p>`}
  <//>`;
}

function sentenceOf({ rule, detail }: Alert): unknown {
  const text = (name: string) => String(detail[name] ?? '');
  const operation = detail.operation_id
    ? html`<a href=${`/operations/${text('operation_id')}`}>${shortText(text('operation_id'))}</a>`
    : 'An operation';
  const wallet = html`wallet <${WalletLink} addr=${text('addr')} />`;
  const than = (name: string) => amountText(text(name));
  switch (detail.kind ?? rule) {
    case 'wallet_below':
      return html`${rule}: ${wallet} holds ${than('amount')}, less than ${than('limit')}.`;
    case 'wallet_above':
      return html`${rule}: ${wallet} holds ${than('amount')}, more than ${than('limit')}.`;
    case 'drift_above':
      return html`${rule}: <a href=${`/drifts/${text('drift_id')}`}>a drift</a> of
        ${' '}${signedText(text('amount'))} on ${wallet}, more than ${than('limit')}.`;
    case 'observer.late':
      return 'Wallets or tokens are not polled as often as promised.';
    case 'operation.stuck':
      return html`${operation} was executed and does not settle.`;
    case 'ledger.fee_rule_contradicted':
      return html`Balances show that fees are ${text('observed').replace('_', ' ')}, first with
        ${' '}${operation}: change the setting ledger.fee_mode.`;
    case 'wallet.vanished':
      return html`The service no longer shows ${wallet}, of which the ledger holds a balance.`;
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
