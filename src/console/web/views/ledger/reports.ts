/** The list of reports, and the order to make one. */

import type { status } from '../../../../resources/admin/status.ts';
import { dayText } from '../../../../resources/local-time.ts';
import { report } from '../../../../resources/reports/report.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, sessionOf, useData, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { type Field, Order, type Values } from '../../kit/dialog.ts';
import { Card, Code, ListTable, Pill, State, View } from '../../kit/elements.ts';
import { countText, instantOf, zoneOfPage } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { go } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

export type Report = Shown<typeof report>;
type Calendar = Shown<typeof status>['reports'];

/** In the zone of the reports, also on other pages; days where the period has whole ones. */
export function periodText(from: string, to: string): string {
  const zone = sessionOf()?.time_zone ?? 'UTC';
  const [first, end] = [dayText(from, zone), dayText(to, zone)];
  const isOneDay = end.includes(' ') && first.slice(0, 10) === end.slice(0, 10);
  return `${first} to ${isOneDay ? end.slice(11) : end} (${zone})`;
}

export function Verdict({ of: { verdict, breaks, provisional } }: { of: Report }) {
  const count = `${countText(breaks)} ${breaks === 1 ? 'break' : 'breaks'}`;
  return html`<span>
    <${State} of=${verdict === 'breaks' ? 'unbalanced' : verdict} />
    ${breaks > 0 && html` <span class="nowrap">${count}</span>`}
    ${provisional && html` <${Pill} tone="warn">provisional<//>`}
  </span>`;
}

/** The last whole month, of a day of the current one, as inputs of local time take it. */
export function lastMonth(today: string): { from: string; to: string } {
  const to = `${today.slice(0, 8)}01`;
  const before = new Date(Date.parse(to) - 1).toISOString();
  return { from: `${before.slice(0, 8)}01T00:00`, to: `${to}T00:00` };
}

function fieldsOf({ today }: Calendar): Field[] {
  const { from, to } = lastMonth(today);
  const type = 'datetime-local';
  return [
    { name: 'from', label: 'From', type, value: from, hint: `Time of ${zoneOfPage()}` },
    { name: 'to', label: 'To, exclusive', type, value: to },
  ];
}

async function makeReport({ from, to }: Values) {
  const period = { from: instantOf(from), to: instantOf(to) };
  const { id } = await call<Report>('POST', '/api/reports', { kind: 'reconciliation', ...period });
  go(`/reports/${id}`);
}

export default function Reports(_: ViewProps) {
  const list = useList<Report>('/api/reports?limit=50');
  const calendar = useData<{ reports: Calendar }>('/api/status').data?.reports;
  return html`<${View}
    title="Reports"
    lead="Reconciliations of operations, ledger and observations over a period. A report is never
      changed; that of a closed period is the one of its close."
    actions=${
      calendar &&
      html`<${Order}
        needs=${['manage', 'decide']}
        label="Make a report"
        text="Computes the reconciliation of the period from what is known now, and stores it."
        fields=${fieldsOf(calendar)}
        order=${makeReport}
      />`
    }
  >
    <${Card}>
      <${ListTable}
        list=${list}
        columns=${COLUMNS}
        keyOf=${({ id }: Report) => id}
        empty="None yet: a report is made at the end of each day if a schedule is set, or here."
      />
    <//>
  <//>`;
}

const COLUMNS = columnsFor(report, {
  period_from: {
    of: ({ id, period_from: from, period_to: to }) =>
      html`<a href=${`/reports/${id}`}>${periodText(from, to)}</a>`,
  },
  verdict: { of: (one) => html`<${Verdict} of=${one} />` },
  hash: { of: ({ hash }) => html`<${Code} text=${hash} />` },
});
/** The period, the verdict, and when it was made. */
export const REPORT_COLUMNS = COLUMNS.slice(0, 3);
