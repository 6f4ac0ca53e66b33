/** The close of the next period: first what prevents it, then each open item with its reason. */

import type { periodClose } from '../../../../resources/ledger/period.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call } from '../../kit/api.ts';
import { DECIDE, type Field, Form, type Values } from '../../kit/dialog.ts';
import { Amount, Card, Pill, Table, Time } from '../../kit/elements.ts';
import { pageOf } from '../../kit/find.ts';
import { instantOf, signedText, wordsOf, zoneOfPage } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import { lastMonth, periodText } from './reports.ts';

type Trial = Shown<typeof periodClose>;
type Obstacle = Trial['obstacles'][number];

/** What a person can do about it in these pages; else the words of the API. */
const ADVICE: Record<string, string> = {
  drift_open: 'End the drift (one owner proposes, another approves), or sign it off',
  outcome_undecided: 'Decide the operation, or sign it off',
  outcome_unknown: 'Wait for polls, or sign it off',
  observed_not_explained: 'A second observation confirms or clears it, or sign it off',
  period_runs: 'The period still runs: choose an end that has passed',
};
/**
 * @param from where the last closed period ends; undefined before the first one
 * @param today the day in the zone of the reports
 */
export function ClosePeriod(of: { from: string | undefined; today: string; done: () => void }) {
  const { from, today, done } = of;
  const [input, setInput] = useState<Values>({});
  const [trial, setTrial] = useState<Trial | undefined>(undefined);
  const find = async (values: Values) => {
    const body = { ...momentsOf(values), dry_run: true };
    setTrial(await call<Trial>('POST', '/api/periods/close', body));
    setInput(values);
  };
  const tone = trial?.obstacles.length ? 'warn' : 'none';
  return html`<${Card} title="Close the next period" tone=${tone}>
    <p class="muted">
      ${from ? html`It begins where the last one ends: <${Time} at=${from} exact />.` : ''} First
      see what prevents the close; this changes nothing.
    </p>
    <${Form}
      needs=${DECIDE}
      fields=${endFields(from, today, input)}
      label="See what prevents it"
      order=${find}
    />
    ${trial && html`<${Close} trial=${trial} input=${input} done=${done} />`}
  <//>`;
}

/** With what was entered last; at first the month that a report proposes. */
function endFields(from: string | undefined, today: string, input: Values): Field[] {
  const month = lastMonth(today);
  const isClosed = from !== undefined && Date.parse(from) >= Date.parse(instantOf(month.to));
  const { from: first = month.from, to: last = isClosed ? `${today}T00:00` : month.to } = input;
  const common = { type: 'datetime-local', hint: `Time of ${zoneOfPage()}` } as const;
  const end: Field = { name: 'to', label: 'End, exclusive', value: last, ...common };
  return from === undefined
    ? [{ name: 'from', label: 'Begin', value: first, ...common }, end]
    : [end];
}

/** The begin is known after the first period. */
function momentsOf({ from, to }: Values) {
  return { ...(from === undefined ? {} : { from: instantOf(from) }), to: instantOf(to) };
}

function Close({ trial, input, done }: { trial: Trial; input: Values; done: () => void }) {
  const { obstacles, period_from: from, period_to: to } = trial;
  const items = obstacles.filter(({ can_sign_off: can }) => can);
  const mustEnd = obstacles.length > items.length;
  const fields: Field[] = items.map(({ kind, subject, amount }) => ({
    name: subject ?? '',
    optional: true,
    label: ['Reason to sign off', wordsOf(kind), amount && signedText(amount), subject]
      .filter(Boolean)
      .join(' · '),
  }));
  const close = ({ ...reasons }: Values) => {
    const signOffs = Object.entries(reasons).map(([subject, reason]) => ({ subject, reason }));
    const body = { ...momentsOf(input), sign_offs: signOffs };
    return call('POST', '/api/periods/close', body);
  };
  return html`<h3>${periodText(from, to)}</h3>
    ${
      obstacles.length === 0
        ? html`<p class="notice good">Nothing prevents the close.</p>`
        : html`<${Table} rows=${obstacles} columns=${COLUMNS} empty="" />`
    }
    ${
      mustEnd
        ? html`<p class="notice bad">It cannot be closed before what is marked is ended.</p>`
        : html`<p class="muted">
              Closing stores the report of this period as final, with the reasons that you give.
              Another owner signs it.
            </p>
            <${Form}
              needs=${DECIDE}
              fields=${fields}
              label="Close the period"
              order=${close}
              done=${done}
            />`
    }`;
}

/** An open item of a report, linked where it has a page. */
export function subjectOf(subject: string): unknown {
  const page = pageOf(subject);
  if (page !== undefined) {
    const what = subject.startsWith('drf_') ? 'the drift' : 'the operation';
    return html`<a href=${page}>${what}</a>`;
  }
  if (!subject.startsWith('wallet:')) return subject;
  return html`<a href=${`/wallets/${subject.slice('wallet:'.length)}`}>the wallet</a>`;
}

const COLUMNS = [
  {
    head: 'What prevents it',
    of: (row: Obstacle) =>
      html`${wordsOf(row.kind)} ${!row.can_sign_off && html`<${Pill} tone="bad">must end<//>`}`,
  },
  { head: 'Of', of: ({ subject }: Obstacle) => subject && subjectOf(subject) },
  {
    head: 'Amount',
    number: true,
    of: ({ amount }: Obstacle) => amount && html`<${Amount} of=${amount} signed />`,
  },
  { head: 'Since', of: ({ since }: Obstacle) => since && html`<${Time} at=${since} />` },
  { head: 'What to do', of: ({ kind, next }: Obstacle) => ADVICE[kind] ?? next },
];
