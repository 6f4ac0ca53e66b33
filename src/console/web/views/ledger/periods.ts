/** Closed periods: who closed and signed each, with which report; and the close of the next one. */

import type { status } from '../../../../resources/admin/status.ts';
import type { period } from '../../../../resources/ledger/period.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, type Page, useData, useList, withQuery } from '../../kit/api.ts';
import { DECIDE, Order, REASON } from '../../kit/dialog.ts';
import { Card, Choice, ListTable, State, Time, View } from '../../kit/elements.ts';
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { ClosePeriod, subjectOf } from './close.ts';
import { periodText } from './reports.ts';

type Period = Shown<typeof period>;
type Calendar = Pick<Shown<typeof status>, 'reports'>;

const STATES = [
  ['', 'any state'],
  ['closed', 'closed, not signed'],
  ['signed', 'signed'],
  ['reopened', 'reopened'],
] as const;

export default function Periods(_: ViewProps) {
  const state = usePlace().query.get('state') ?? '';
  const list = useList<Period>(withQuery('/api/periods', { limit: '50', state }));
  const newest = useData<Page<Period>>('/api/periods?limit=50');
  const periods = newest.data?.data;
  const inForce = periods?.find((one) => one.state !== 'reopened');
  const today = useData<Calendar>('/api/status').data?.reports.today;
  const again = () => {
    list.reload();
    newest.reload();
  };
  return html`<${View}
    title="Periods"
    lead="One owner closes a period with its report, another signs it. From then on the report of
      that period stays the same; what is recorded later is shown in later reports."
  >
    ${
      periods &&
      today &&
      html`<${ClosePeriod}
        key=${periods[0]?.id}
        from=${inForce?.period_to}
        today=${today}
        done=${again}
      />`
    }
    <${Card} title="Closed periods">
      <div class="filters">
        <${Choice}
          name="State"
          value=${state}
          options=${STATES}
          onChange=${(value: string) => setQuery({ state: value })}
        />
      </div>
      <${ListTable}
        list=${list}
        columns=${columnsOf(inForce, again)}
        keyOf=${({ id }: Period) => id}
        empty=${state ? 'No period is in this state.' : 'No period is closed yet.'}
      />
    <//>
  <//>`;
}

const byAt = (by: string | null, at: string | null) =>
  by && html`<span>${by} <span class="muted"><${Time} at=${at} /></span></span>`;

function columnsOf(newest: Period | undefined, done: () => void) {
  return [
    {
      head: 'Period',
      of: ({ report_id: report, period_from: from, period_to: to }: Period) =>
        html`<a href=${`/reports/${report}`}>${periodText(from, to)}</a>`,
    },
    { head: 'State', of: ({ state }: Period) => html`<${State} of=${state} />` },
    { head: 'Closed by', of: (row: Period) => byAt(row.closed_by, row.closed_at) },
    {
      head: 'Signed off',
      of: ({ sign_offs: items }: Period) =>
        items.length > 0 &&
        html`<div>
          ${items.map(
            ({ kind, subject, reason }) => html`<div>
              ${wordsOf(kind)} (${subjectOf(subject)}): ${reason}
            </div>`,
          )}
        </div>`,
    },
    { head: 'Signed by', of: (row: Period) => byAt(row.signed_by, row.signed_at) },
    {
      head: 'Reopened',
      of: (row: Period) =>
        row.reopen_reason &&
        html`<div>
          ${row.reopen_proposed_by && html`<div>proposed by ${row.reopen_proposed_by}</div>`}
          ${byAt(row.reopened_by, row.reopened_at)}
          <div>${row.reopen_reason}</div>
        </div>`,
    },
    {
      head: 'Orders',
      of: (row: Period) =>
        (row.state === 'closed' || row.id === newest?.id) &&
        html`<span class="actions">
          ${row.state === 'closed' && html`<${Sign} period=${row} done=${done} />`}
          ${row.id === newest?.id && html`<${Reopening} period=${row} done=${done} />`}
        </span>`,
    },
  ];
}

interface PeriodOrder {
  period: Period;
  done: () => void;
}

function Sign({ period, done }: PeriodOrder) {
  const { id, period_from: from, period_to: to, closed_by: by } = period;
  return html`<${Order}
    needs=${DECIDE}
    label="Sign"
    text=${`You confirm the report of ${periodText(from, to)} with what is signed off in it. The
      owner who closed it (${by}) cannot sign it.`}
    proposedBy=${by}
    order=${() => call('POST', `/api/periods/${id}/sign`)}
    done=${done}
  />`;
}

function Reopening(of: PeriodOrder) {
  const approve = of.period.reopen_proposed_by && html`<${Approve} ...${of} />`;
  return html`${approve}<${Reopen} ...${of} />`;
}

function Approve({ period, done }: PeriodOrder) {
  const { id, period_from: from, period_to: to, reopen_proposed_by: by, reopen_reason } = period;
  const { reopen_proposal: n } = period;
  return html`<${Order}
    needs=${DECIDE}
    label="Approve reopening"
    text=${`The signed close of ${periodText(from, to)} is then no longer in force
      (reason: ${reopen_reason}). The owner who proposed it (${by}) cannot approve it.`}
    proposedBy=${by}
    order=${() => call('POST', `/api/periods/${id}/approve`, { n })}
    done=${done}
  />`;
}

function Reopen({ period, done }: PeriodOrder) {
  const { id, state, period_from: from, period_to: to } = period;
  const second = state === 'signed' ? ' It was signed, so another owner has to approve this.' : '';
  return html`<${Order}
    needs=${DECIDE}
    label=${state === 'signed' ? 'Propose to reopen' : 'Reopen'}
    kind="quiet"
    text=${`The close of ${periodText(from, to)} is no longer in force: the period has to be closed
      and signed again, with a new report. The old report is kept.${second}`}
    fields=${[REASON]}
    order=${(values: object) => call('POST', `/api/periods/${id}/reopen`, values)}
    done=${done}
  />`;
}
