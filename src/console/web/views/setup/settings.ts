/** The settings in effect on the daemon that answers, and where each comes from. */

import type { setting } from '../../../../resources/admin/setting.ts';
import { cellText } from '../../../../resources/cells.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useData } from '../../kit/api.ts';
import { Card, Choice, Failed, Loading, Pill, Table, View } from '../../kit/elements.ts';
import { durationText } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

type Setting = Shown<typeof setting>;

export default function Settings(_: ViewProps) {
  const { data, problem, reload } = useData<{ data: Setting[] }>('/api/settings');
  const { query } = usePlace();
  const [show, text] = ['show', 'query'].map((name) => query.get(name) ?? '');
  const shown = data?.data
    .filter(({ source }) => show !== 'changed' || source !== 'default')
    .filter(({ name }) => name.toLowerCase().includes((text ?? '').toLowerCase()));
  const sections = Map.groupBy(shown ?? [], ({ name }) => sectionOf(name));
  const type = (event: Event) => setQuery({ query: (event.target as HTMLInputElement).value });
  return html`<${View}
    title="Settings"
    lead="In effect since this daemon started. Of a secret only whether it is set is known here."
  >
    <${Card}>
      <div class="filters">
        <${Choice}
          name="Show"
          value=${show}
          options=${[['', 'all settings'], ['changed', 'only what is not a default']]}
          onChange=${(value: string) => setQuery({ show: value })}
        />
        <label class="field grow">
          <span>Name</span>
          <input type="search" value=${text} onInput=${type} spellcheck=${false} />
        </label>
      </div>
    <//>
    <${Failed} problem=${problem} retry=${reload} />
    ${!data && !problem && html`<${Loading} />`}
    ${shown?.length === 0 && html`<p class="empty">No setting fits.</p>`}
    <div class="masonry">
      ${[...sections].map(
        ([section, rows]) => html`<${Card} key=${section} title=${section}>
          <${Table} columns=${COLUMNS} rows=${rows} empty="" keyOf=${({ name }: Setting) => name} />
        <//>`,
      )}
    </div>
  <//>`;
}

/** A long name may wrap after a part of it. */
function breakable(name: string) {
  return name.split(/(?<=[_.])/).map((part) => html`${part}<wbr />`);
}

function sectionOf(name: string): string {
  return /^[a-z]/.test(name) ? (name.split('.')[0] ?? '') : 'environment';
}

function textOf({ unit, value, is_secret: isSecret, is_set: isSet }: Setting) {
  if (!isSet) return html`<span class="muted">not set</span>`;
  if (isSecret) return html`<span class="muted">set, hidden</span>`;
  if (Array.isArray(value))
    return value.length > 0 ? value.map((one) => html`<div>${cellText(one)}</div>`) : 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'object') return 'none';
  if (unit === 'ms' && typeof value === 'number')
    return html`<span title=${`${value} ms`}>${durationText(value)}</span>`;
  return html`<span class="break">${String(value)}</span>`;
}

const COLUMNS = [
  {
    head: 'Name',
    of: ({ name, description }: Setting) =>
      html`<code>${breakable(name.replace(/^[a-z]+\./, ''))}</code>
        <span class="muted break">${description?.split('\n')[0]}</span>`,
  },
  { head: 'Value', of: textOf },
  {
    head: 'Source',
    of: ({ source }: Setting) =>
      source === 'default'
        ? html`<span class="muted">default</span>`
        : html`<${Pill} tone="good">${source}<//>`,
  },
];
