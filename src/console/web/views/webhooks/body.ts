/** The body of an event: its data as names and values, and whole as JSON. */
import type { event } from '../../../../resources/delivery/event.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { isSubscriber } from '../../kit/api.ts';
import { Amount, Code, Facts, Time } from '../../kit/elements.ts';
import { pageOf } from '../../kit/find.ts';
import { amountText, shortText, signedText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

export type EventBody = Shown<typeof event>;

/** Names and values of nested data, such as `current balance`. */
function flatten(data: object, before = ''): [name: string, field: string, value: unknown][] {
  return Object.entries(data).flatMap(([field, value]) => {
    const name = before + wordsOf(field);
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isTree ? flatten(value, `${name} `) : [[name, field, value]];
  });
}

function shownOf(field: string, value: unknown): unknown {
  if (value === null || value === '') return null;
  if (Array.isArray(value))
    return value.map((item, n) => [n > 0 ? ', ' : '', shownOf('', item) ?? '']);
  const text = String(value);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return html`<${Time} at=${text} exact />`;
  if (/(amount|balance)/.test(field) && /^-?\d+$/.test(text)) return html`<${Amount} of=${text} />`;
  const isWallet = /(^|_)addr$|^owner$/.test(field);
  // A subscriber has no pages of them.
  const href = isSubscriber() ? undefined : isWallet ? `/wallets/${text}` : pageOf(text);
  const isLong = /^\S{24,}$/.test(text);
  return isLong || href ? html`<${Code} text=${text} href=${href} /> ` : text;
}

export function EventFacts({ event }: { event: EventBody }) {
  const pairs = flatten(event.data).map(([name, field, value]) => [name, shownOf(field, value)]);
  return html`<${Facts} pairs=${pairs} />
    <details>
      <summary>The whole body</summary>
      <pre tabindex="0">${JSON.stringify(event, null, 2)}</pre>
    </details>`;
}

/** One line that says what happened. */
export function summaryOf({ type, data }: EventBody): string {
  const text = (name: string) => (data[name] == null ? '' : String(data[name]));
  if (text('body_removed_at')) return 'its body was removed';
  const group = type.split('.')[0];
  if (group === 'operation') {
    const token = text('contract_id') && `token ${text('contract_id')}/${text('token_id')}`;
    const to = text('to_addr') && `to ${shortText(text('to_addr'))}`;
    return join(wordsOf(text('kind')), amountText(text('amount')), token, to);
  }
  if (group === 'token') return join(`token ${text('contract_id')}/${text('token_id')}`);
  if (group === 'wallet')
    return join(shortText(text('addr')), changeOf(data), signedText(text('amount')));
  if (group === 'service')
    return join(text('previous') && `${text('previous')} →`, text('current'));
  if (group === 'report') return join(text('verdict'), text('period_from').slice(0, 10));
  if (group === 'period') return text('period_from').slice(0, 10);
  if (group === 'alert')
    return join(text('rule'), shortText(text('addr')), amountText(text('amount')));
  if (group === 'observer') return join(text('targets') && countOf(text('targets'), 'target'));
  return join(text('url'), wordsOf(text('reason')));
}

const countOf = (count: string, what: string) => `${count} ${what}${count === '1' ? '' : 's'}`;

const join = (...parts: string[]) => parts.filter(Boolean).join(' ');

function changeOf({ previous, current }: Record<string, unknown>): string {
  const balanceOf = (state: unknown) =>
    amountText(String((state as { balance?: string } | null | undefined)?.balance ?? ''));
  return join(balanceOf(previous) && `${balanceOf(previous)} →`, balanceOf(current));
}
