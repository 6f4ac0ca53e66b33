/** Deliveries of events to endpoints; the filters are part of the address. */
import { DELIVERY_STATES, delivery } from '../../../../resources/delivery/delivery.ts';
import { EVENT_TYPES } from '../../../../resources/delivery/events.ts';
import { FAULT_WORDS } from '../../../../resources/faults.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { isSubscriber, type Page, useData, useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Card, Chip, Choice, ListTable, State, Time, View } from '../../kit/elements.ts';
import { isPast, shortText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import type { Endpoint } from './health.ts';
import { GiveUp } from './held.ts';

export type Delivery = Shown<typeof delivery>;

const ADVICE: Record<string, string> = {
  pending: 'These deliveries wait for their next attempt. Open one to send it now.',
  held: 'The endpoints of these deliveries are disabled. Enable an endpoint to release them.',
  exhausted:
    'Every attempt of these deliveries failed. Mend the receiver and retry them, or give them up.',
};

/** Endpoints to choose from; the deliveries of another one are opened from its page. */
const OFFERED_MAX = 50;

export default function Deliveries(_: ViewProps) {
  const { query } = usePlace();
  const [endpoint, state, type, event] = ['endpoint_id', 'state', 'event_type', 'event_id'].map(
    (name) => query.get(name) ?? '',
  );
  const filter = { endpoint_id: endpoint, state, event_type: type, event_id: event };
  const list = useList<Delivery>(withQuery('/api/deliveries', { limit: '50', ...filter }));
  const { data: page } = useData<Page<Endpoint>>(`/api/endpoints?limit=${OFFERED_MAX}`);
  const offered = (page?.data ?? []).map(({ id, url }): [string, string] => [id, url]);
  if (endpoint && offered.every(([id]) => id !== endpoint))
    offered.push([endpoint, list.rows?.[0]?.endpoint_url ?? shortText(endpoint)]);
  return html`<${View} title="Deliveries" lead=${ADVICE[state ?? '']}>
    <${Card}>
      <div class="filters">
        <${Choice}
          name="Endpoint"
          value=${endpoint}
          options=${isSubscriber() ? offered : [['', 'any endpoint'], ...offered]}
          onChange=${(value: string) => setQuery({ endpoint_id: value })}
        />
        ${page?.next_cursor && html`<a href="/endpoints">More endpoints</a>`}
        <${Choice}
          name="State"
          value=${state}
          options=${[['', 'any state'], ...DELIVERY_STATES.map((name) => [name, wordsOf(name)])]}
          onChange=${(value: string) => setQuery({ state: value })}
        />
        <${Choice}
          name="Event type"
          value=${type}
          options=${[['', 'any type'], ...EVENT_TYPES.map((one) => [one, one])]}
          onChange=${(value: string) => setQuery({ event_type: value })}
        />
        ${
          event &&
          html`<${Chip}
            text=${`Only event ${shortText(event)}`}
            remove=${() => setQuery({ event_id: '' })}
          />`
        }
      </div>
    <//>
    <${Card}>
      ${
        state === 'exhausted' &&
        list.rows?.length !== 0 &&
        html`<div class="actions"><${GiveUp} rows=${list.rows ?? []} done=${list.reload} /></div>`
      }
      <${ListTable}
        list=${list}
        file=${delivery}
        columns=${deliveryColumns()}
        keyOf=${({ id }: Delivery) => id}
        empty="No delivery matches. An event is delivered to each endpoint that wants its type."
      />
    <//>
  <//>`;
}

/** What a delivery is about: `wallet:0x…` as its address. */
function subjectText(subject: string): string {
  return shortText(subject.slice(subject.indexOf(':') + 1), 12, 6);
}

/** One that waits for its retry after a failure is failing. */
export function stateOf({ state, failing }: Delivery): string {
  return state === 'pending' && failing ? 'failing' : state;
}

/** What the receiver answered last, or why it did not. */
export function answerOf({ last_status: status, last_error: error }: Delivery): unknown {
  if (error === null) return status === null ? null : String(status);
  return html`<span title=${error}>${faultWords(error)}</span>`;
}

export const faultWords = (error: string): string => FAULT_WORDS[error] ?? wordsOf(error);

/** @param isOfOne all are of the endpoint whose page shows them */
export function deliveryColumns(isOfOne = false) {
  const endpoint = {
    of: ({ endpoint_id: id, endpoint_url: url }: Delivery) =>
      html`<a class="number" href=${`/endpoints/${id}`} title=${url ?? id}>${
        url === null ? shortText(id) : shortText(url.replace(/^https?:\/\//, ''), 20, 8)
      }</a>`,
  };
  return columnsFor(delivery, {
    created_at: {
      of: ({ id, created_at: at }) => html`<a href=${`/deliveries/${id}`}><${Time} at=${at} /></a>`,
    },
    id: null,
    event_type: {
      of: ({ event_type: type, subject }) => html`<span>
        ${type}<br /><span class="muted" title=${subject}>${subjectText(subject)}</span>
      </span>`,
    },
    subject: null,
    state: { of: (row) => html`<${State} of=${stateOf(row)} />` },
    last_status: { of: answerOf, number: false },
    finished_at: {
      of: ({ due_at: due, finished_at: end }) =>
        due && isPast(due) ? 'due' : html`<${Time} at=${end ?? due} />`,
    },
    endpoint_id: isOfOne ? null : endpoint,
  });
}
