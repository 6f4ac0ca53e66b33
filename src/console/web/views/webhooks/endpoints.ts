/** The receivers of webhooks with their health, and the form for a new one. */
import { endpointDetail } from '../../../../resources/delivery/endpoint.ts';
import { call, sessionOf, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { type Field, Order, type Values } from '../../kit/dialog.ts';
import { Card, Choice, ListTable, Time, View } from '../../kit/elements.ts';
import { html, useState } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { type Endpoint, HealthPill, typesText } from './health.ts';
import { type NewSecret, SecretCard } from './secret.ts';

export const ENDPOINT_FIELDS: readonly Field[] = [
  { name: 'url', label: 'URL of the receiver', hint: 'It answers 2xx within 15 seconds' },
  { name: 'description', label: 'Description', optional: true },
  {
    name: 'event_types',
    label: 'Event types',
    value: '*',
    type: 'area',
    hint: 'Separated by commas or lines: * for all, operation.* for a group, or wallet.observed',
  },
  {
    name: 'ordering',
    label: 'Order',
    type: 'choice',
    options: [
      ['none', 'as fast as possible, in any order'],
      ['subject', 'in order per wallet, token or operation'],
    ],
  },
  {
    name: 'rate_per_s',
    label: 'Most deliveries per second',
    type: 'number',
    optional: true,
    hint: 'Without a limit the receiver may get bursts',
  },
];

/** The body of a request to create or change an endpoint. */
export function endpointInput({ url, description, event_types, ordering, rate_per_s }: Values) {
  return {
    url,
    ordering,
    description: description ?? null,
    event_types: (event_types ?? '*').split(/[\s,]+/).filter(Boolean),
    rate_per_s: rate_per_s === undefined ? null : Number(rate_per_s),
  };
}

const LEAD =
  'Receivers of signed webhooks. What a receiver does not take is sent again with growing ' +
  'pauses; nothing is lost.';

export default function Endpoints(_: ViewProps) {
  const failing = usePlace().query.get('failing') ?? '';
  const list = useList<Endpoint>(withQuery('/api/endpoints', { limit: '50', failing }));
  const [made, setMade] = useState<NewSecret | undefined>(undefined);
  const create = async (values: Values) =>
    setMade(await call('POST', '/api/endpoints', endpointInput(values)));
  const actions = html`<${Order}
    label="Create an endpoint"
    text="It receives every event that happens after this. Its signing secret is shown once."
    fields=${ENDPOINT_FIELDS}
    order=${create}
    done=${list.reload}
  />`;
  return html`<${View}
    title="Endpoints"
    lead=${LEAD}
    actions=${actions}
  >
    ${made && html`<${SecretCard} made=${made} done=${() => setMade(undefined)} />`}
    <${Card}>
      <div class="filters">
        <${Choice}
          name="Health"
          value=${failing}
          options=${[['', 'any health'], ['true', 'failing']]}
          onChange=${(value: string) => setQuery({ failing: value })}
        />
      </div>
      <${ListTable}
        list=${list}
        columns=${COLUMNS}
        keyOf=${({ id }: Endpoint) => id}
        empty=${
          failing
            ? 'No endpoint fails.'
            : 'No endpoint yet. Create one, or read the events from the feed at /api/events.'
        }
      />
    <//>
  <//>`;
}

/** Of an endpoint of another owner only the origin is known here. */
function isHidden({ created_by: owner }: Endpoint): boolean {
  const { owner: own, scopes = [] } = sessionOf() ?? {};
  return owner !== own && !scopes.includes('admin');
}

const COLUMNS = columnsFor(endpointDetail, {
  url: {
    of: (endpoint) => {
      const { id, url, description } = endpoint;
      return html`<span>
        <a href=${`/endpoints/${id}`} class="break">${url}</a>
        ${
          isHidden(endpoint) &&
          html`<span class="muted"> path shown to ${endpoint.created_by}</span>`
        }
        ${description && html`<br /><span class="muted">${description}</span>`}
      </span>`;
    },
  },
  health: {
    of: (endpoint) => html`<${HealthPill} endpoint=${endpoint} />`,
  },
  event_types: { of: ({ event_types: types }) => typesText(types) },
}).concat({
  head: 'Last success',
  of: ({ health }) => html`<${Time} at=${health.last_success_at} />`,
});
