/** One delivery: the request that is sent, every attempt with its response, and the retry. */
import type { attempt, deliveryDetail } from '../../../../resources/delivery/delivery.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, isSubscriber, type Page, type Problem, useData } from '../../kit/api.ts';
import { Order } from '../../kit/dialog.ts';
import { Card, Code, Facts, Failed, Pending, State, Time, View } from '../../kit/elements.ts';
import { durationText, isPast } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import { type EventBody, EventFacts } from './body.ts';
import { faultWords, stateOf } from './deliveries.ts';
import type { Endpoint } from './health.ts';

type Detail = Shown<typeof deliveryDetail>;
type Attempt = Shown<typeof attempt>;

const EVERY_MS = 3_000;
const GIVE_UP = `It is cancelled, and the overview counts it no longer. The receiver can read its
  event in the feed, and a retry still sends it.`;

export default function DeliveryView({ ids }: ViewProps) {
  const path = `/api/deliveries/${encodeURIComponent(ids[0] ?? '')}`;
  const { data, problem, reload } = useData<Detail>(path, EVERY_MS);
  const attempts = useData<Page<Attempt>>(`${path}/attempts`, EVERY_MS);
  const again = () => {
    reload();
    attempts.reload();
  };
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  const shown = { delivery: data, path, again, problem: problem ?? attempts.problem };
  return html`<${Loaded} ...${shown} attempts=${attempts.data?.data ?? []} />`;
}

function Loaded({
  delivery: data,
  attempts: rows,
  path,
  problem,
  again,
}: {
  delivery: Detail;
  attempts: readonly Attempt[];
  path: string;
  problem: Problem | undefined;
  again: () => void;
}) {
  const endpoint = useData<Endpoint>(`/api/endpoints/${data.endpoint_id}`).data;
  const retry = html`<${Order}
    ownedBy=${endpoint?.created_by}
    label="Retry now"
    kind=${data.state === 'delivered' ? 'quiet' : 'plain'}
    text="The same event is sent once more, with the same id. Its schedule of attempts starts anew."
    disabled=${data.state === 'held' || data.state === 'sending'}
    order=${() => call('POST', `${path}/retry`)}
    done=${again}
  />
  ${
    data.state === 'exhausted' &&
    html`<${Order}
      ownedBy=${endpoint?.created_by}
      label="Give it up"
      kind="quiet"
      text=${GIVE_UP}
      order=${() => call('POST', `${path}/cancel`)}
      done=${again}
    />`
  }`;
  const title = html`${data.event_type} <${State} of=${stateOf(data)} />`;
  return html`<${View} title=${title} lead=${adviceOf(data)} actions=${retry}>
    <${Failed} problem=${problem} retry=${again} />
    <div class="columns">
      <${Card} title="Delivery"><${DeliveryFacts} delivery=${data} url=${endpoint?.url} /><//>
      <${Request} delivery=${data} />
    </div>
    <${Card} title=${`Attempts (${data.attempts})`}>
      ${rows.length === 0 && html`<p class="empty">None yet.</p>`}
      ${rows.toReversed().map((row) => html`<${AttemptCard} key=${row.n} attempt=${row} />`)}
    <//>
  <//>`;
}

function adviceOf({ state, failing }: Detail): string {
  if (state === 'pending') return failing ? 'The last attempt failed.' : 'It is due.';
  if (state === 'held') return 'Its endpoint is disabled. Enable the endpoint to release it.';
  if (state === 'exhausted')
    return 'Every attempt failed. Mend the receiver, then retry it; or give it up.';
  if (state === 'cancelled') return 'It was cancelled and is not sent, unless it is retried.';
  return '';
}

function DeliveryFacts({ delivery, url }: { delivery: Detail; url: string | undefined }) {
  const { id, endpoint_id: endpoint, event_id: event, subject_seq: n } = delivery;
  const pairs = [
    ['Endpoint', html`<a class="break" href=${`/endpoints/${endpoint}`}>${url ?? endpoint}</a>`],
    ['Subject', html`<${Code} text=${delivery.subject.replace(/^\w+:/, '')} />`],
    ['Number', `${n} of this subject`],
    ['Event', html`<${Code} text=${event} href=${eventPath(delivery)} />`],
    ['Delivery', html`<${Code} text=${id} />`],
    ['Created', html`<${Time} at=${delivery.created_at} exact />`],
    ['Next attempt', delivery.due_at && dueText(delivery.due_at)],
    ['Ended', delivery.finished_at && html`<${Time} at=${delivery.finished_at} exact />`],
  ];
  return html`<${Facts} pairs=${pairs} />`;
}

/** The deliveries of its event: to all endpoints, or to this one for its subscriber. */
function eventPath({ event_id: event, endpoint_id: endpoint }: Detail): string {
  const own = isSubscriber() ? `&endpoint_id=${endpoint}` : '';
  return `/deliveries?event_id=${event}${own}`;
}

/** Past its time it waits for its endpoint, or for a slot to be sent in. */
function dueText(at: string) {
  return isPast(at) ? 'due' : html`<${Time} at=${at} />`;
}

/** What every attempt sends. The signature is new each time, because it covers the time. */
function Request({ delivery }: { delivery: Detail }) {
  const { request_body: text, event_id: event, body_removed_at: removedAt } = delivery;
  const why = removedAt
    ? html`The body of the event was removed <${Time} at=${removedAt} />.`
    : 'The event is older than its retention period.';
  const headers = [
    ['webhook-id', html`<code>${event}</code>`],
    ['webhook-timestamp', 'the time of the attempt'],
    ['webhook-signature', 'made for each attempt'],
    ['content-type', html`<code>application/json</code>`],
  ];
  return html`<${Card} title="Request">
    <${Facts} pairs=${headers} />
    <h3>Body</h3>
    ${
      text === null
        ? html`<p class="empty">${why}</p>`
        : html`<${EventFacts} event=${JSON.parse(text) as EventBody} />`
    }
  <//>`;
}

function AttemptCard({ attempt }: { attempt: Attempt }) {
  const { n, at, duration_ms: took, result, status, error } = attempt;
  const { response_headers: headers, response_body: body } = attempt;
  const what = [status && `HTTP ${status}`, error && faultWords(error)].filter(Boolean);
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]);
  // Every attempt of one's own endpoint has an error or headers.
  const isHidden = error === null && headers === null;
  const without = status ? 'The response had no body.' : 'There was no response.';
  return html`<details class="entry" open=${result !== 'delivered'}>
    <summary>
      <span>${n}. <${Time} at=${at} exact /></span>
      <span>${what.join(', ')}</span>
      <span class="muted">${durationText(took)}</span>
      <${State} of=${result} />
    </summary>
    ${pairs.length > 0 && html`<${Facts} pairs=${pairs} />`}
    ${
      body
        ? html`<pre tabindex="0">${body}</pre>`
        : html`<p class="empty">
            ${isHidden ? 'The answer is shown to the owner of the endpoint.' : without}
          </p>`
    }
  </details>`;
}
