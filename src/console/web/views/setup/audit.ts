/** The audit trail: who changed what through the API, newest first. */
import { ACTION_WORDS, auditEntry } from '../../../../resources/admin/audit-entry.ts';
import { cellText } from '../../../../resources/cells.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Card, Code, ListTable, Pill, Time, View } from '../../kit/elements.ts';
import { pageOf } from '../../kit/find.ts';
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';

type Entry = Shown<typeof auditEntry>;

export default function Audit(_: ViewProps) {
  const list = useList<Entry>('/api/audit?limit=50', ({ n }) => n);
  return html`<${View}
    title="Audit trail"
    lead="Who changed what through the API, and what came of it. An entry is stored before its act."
  >
    <${Card}>
      <${ListTable}
        list=${list}
        file=${auditEntry}
        columns=${COLUMNS}
        keyOf=${({ n }: Entry) => n}
        empty="Nothing was changed through the API yet."
      />
    <//>
  <//>`;
}

function valueText(name: string, value: unknown): unknown {
  if (/_at$|^(?:from|to|since|until)$/.test(name) && typeof value === 'number')
    return html`<${Time} at=${new Date(value).toISOString()} exact />`;
  if (Array.isArray(value)) return value.map((one) => cellText(one)).join(', ');
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([of, its]) => `${wordsOf(of)} ${cellText(its)}`)
      .join(', ');
  const text = String(value);
  return /^\S{24,}$/.test(text) ? html`<${Code} text=${text} href=${pageOf(text)} />` : text;
}

const COLUMNS = columnsFor(auditEntry, {
  at: { of: ({ at }) => html`<${Time} at=${at} exact />` },
  owner: { of: ({ owner, key_id: key }) => html`<span title=${key}>${owner}</span>` },
  action: {
    of: ({ action }) =>
      html`<span class="nowrap" title=${action}>${ACTION_WORDS[action] ?? action}</span>`,
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
