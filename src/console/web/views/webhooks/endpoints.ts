/** The receivers of webhooks with their health, and the form for a new one. */
import { endpointDetail } from '../../../../resources/delivery/endpoint.ts';
import { call, isOwn, may, Problem, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { type Field, Order, type Values } from '../../kit/dialog.ts';
import { Card, Choice, ListTable, Time, View } from '../../kit/elements.ts';
import { html, useState } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { type Endpoint, HealthPill, typesText } from './health.ts';
import { type NewSecret, SecretCard } from './secret.ts';

export const ENDPOINT_FIELDS: readonly Field[] = [
  {
    name: 'url',
    label: 'URL of the receiver',
    optional: true,
    hint: 'It answers 2xx within 15 seconds; empty for a broker',
  },
  {
    name: 'destination',
    label: 'A broker instead, as JSON',
    type: 'area',
    optional: true,
    hint:
      'kafka, nats, rabbitmq or sqs, such as {"kind": "kafka", ' +
      '"servers": ["kafka.example:9093"], "topic": "events"}; stored encrypted',
  },
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
  {
    name: 'filter',
    label: 'Filter on the content, as JSON',
    type: 'area',
    optional: true,
    hint: 'Only events that match are sent, such as {"data.amount": {"$gte": "1000"}}',
  },
  {
    name: 'retry_schedule',
    label: 'Seconds before each retry',
    optional: true,
    hint: 'Separated by commas, such as 5, 60, 600; empty for the common schedule',
  },
  {
    name: 'timeout_ms',
    label: 'Timeout in milliseconds',
    type: 'number',
    optional: true,
    hint: 'Empty for the setting',
  },
  {
    name: 'max_in_flight',
    label: 'Attempts in flight at once',
    type: 'number',
    optional: true,
    hint: 'Empty for the setting',
  },
];

/** The body of a request to create or change an endpoint. */
export function endpointInput(values: Values) {
  const { url, destination, description, event_types: types, ordering, filter } = values;
  const { retry_schedule: steps } = values;
  const numberOf = (text: string | undefined) => (text === undefined ? null : Number(text));
  return {
    url,
    destination: destination && jsonOf('destination', destination),
    ordering,
    description: description ?? null,
    event_types: wordsIn(types ?? '*'),
    rate_per_s: numberOf(values.rate_per_s),
    filter: filter === undefined ? null : jsonOf('filter', filter),
    retry_schedule: steps === undefined ? null : wordsIn(steps).map(Number),
    timeout_ms: numberOf(values.timeout_ms),
    max_in_flight: numberOf(values.max_in_flight),
  };
}

const wordsIn = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** @throws Problem */
function jsonOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, 'invalid_request', `${name} is not JSON; texts stand in double quotes`);
  }
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
        file=${endpointDetail}
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
const isHidden = ({ created_by: owner }: Endpoint) => !isOwn(owner) && !may();

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
