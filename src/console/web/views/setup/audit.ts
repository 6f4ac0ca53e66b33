/** The audit trail: who changed what through the API, newest first. */
import { auditEntry } from '../../../../resources/admin/audit-entry.ts';
import { cellText } from '../../../../resources/cells.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Card, Code, ListTable, Pill, Time, View } from '../../kit/elements.ts';
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';

type Entry = Shown<typeof auditEntry>;

const ACTIONS: Record<string, string> = {
  'POST /api/freeze': 'froze writes',
  'POST /api/unfreeze': 'allowed writes again',
  'POST /api/deadlines/clear': 'cleared the deadlines of the service',
  'POST /api/operations': 'reported operations',
  'DELETE /api/operations/{id}': 'cancelled an operation',
  'POST /api/operations/{id}/decide': 'proposed an outcome',
  'POST /api/operations/{id}/approve': 'approved an outcome',
  'POST /api/quarantine/release': 'released from quarantine',
  'POST /api/watches': 'watched targets',
  'DELETE /api/watches/{id}': 'removed a watch',
  'POST /api/watches/remove': 'removed watches',
  'POST /api/drifts/{id}/assign': 'assigned a drift',
  'POST /api/drifts/assign': 'assigned drifts',
  'POST /api/drifts/{id}/propose': 'proposed the end of a drift',
  'POST /api/drifts/propose': 'proposed the end of drifts',
  'POST /api/drifts/{id}/approve': 'approved the end of a drift',
  'POST /api/drifts/approve': 'approved the end of drifts',
  'POST /api/endpoints': 'created an endpoint',
  'PATCH /api/endpoints/{id}': 'changed an endpoint',
  'DELETE /api/endpoints/{id}': 'deleted an endpoint',
  'POST /api/endpoints/{id}/rotate': 'rotated a signing secret',
  'POST /api/endpoints/{id}/test': 'sent a test event',
  'POST /api/endpoints/{id}/enable': 'enabled an endpoint',
  'POST /api/endpoints/{id}/disable': 'disabled an endpoint',
  'POST /api/deliveries/{id}/retry': 'retried a delivery',
  'POST /api/endpoints/{id}/replay': 'replayed events',
  'POST /api/replays/{id}/cancel': 'ended a replay',
  'POST /api/deliveries/{id}/cancel': 'gave up a delivery',
  'POST /api/portal-links': 'made a portal link',
  'POST /api/reports': 'made a report',
  'POST /api/periods/close': 'closed a period',
  'POST /api/periods/{id}/sign': 'signed a period',
  'POST /api/periods/{id}/reopen': 'reopened a period',
  'POST /api/keys': 'created a key',
  'DELETE /api/keys/{id}': 'revoked a key',
};

export default function Audit(_: ViewProps) {
  const list = useList<Entry>('/api/audit?limit=50');
  return html`<${View}
    title="Audit trail"
    lead="Who changed what through the API, and what came of it. An entry is stored before its act."
  >
    <${Card}>
      <${ListTable}
        list=${list}
        columns=${COLUMNS}
        keyOf=${({ n }: Entry) => n}
        empty="Nothing was changed through the API yet."
      />
    <//>
  <//>`;
}

const PAGES: Record<string, string> = {
  op: 'operations',
  ep: 'endpoints',
  dlv: 'deliveries',
  drf: 'drifts',
  rep: 'reports',
};

function valueText(name: string, value: unknown): unknown {
  if (/_at$|^(?:from|to|since|until)$/.test(name) && typeof value === 'number')
    return html`<${Time} at=${new Date(value).toISOString()} exact />`;
  if (Array.isArray(value)) return value.map((one) => cellText(one)).join(', ');
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([of, its]) => `${wordsOf(of)} ${cellText(its)}`)
      .join(', ');
  const text = String(value);
  const page = PAGES[text.split('_')[0] ?? ''];
  if (!/^\S{24,}$/.test(text)) return text;
  return html`<${Code} text=${text} href=${page && `/${page}/${text}`} />`;
}

const COLUMNS = columnsFor(auditEntry, {
  at: { of: ({ at }) => html`<${Time} at=${at} exact />` },
  owner: { of: ({ owner, key_id: key }) => html`<span title=${key}>${owner}</span>` },
  action: {
    of: ({ action }) =>
      html`<span class="nowrap" title=${action}>${ACTIONS[action] ?? action}</span>`,
  },
  detail: {
    of: ({ detail }) =>
      html`<span class="break">
        ${Object.entries(detail).map(
          ([name, value]) =>
            html`<span class="muted">${wordsOf(name)} </span>${valueText(name, value)} `,
        )}
      </span>`,
  },
  result: {
    of: ({ result, detail }) =>
      result === 'done' && detail.dry_run === true
        ? html`<${Pill}>dry run<//>`
        : result === 'done'
          ? html`<${Pill} tone="good">done<//>`
          : html`<${Pill} tone="warn">${result === null ? 'not known' : wordsOf(result)}<//>`,
  },
});
