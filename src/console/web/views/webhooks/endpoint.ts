/** One endpoint: its health, what it gets, its latest deliveries, and what can be done with it. */
import type { endpointActivity } from '../../../../resources/admin/activity.ts';
import { AUTH_WORDS } from '../../../../resources/delivery/auth.ts';
import type { filterTest } from '../../../../resources/delivery/endpoint.ts';
import type { figures } from '../../../../resources/delivery/figures.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, type Page, useData } from '../../kit/api.ts';
import { Form, Order, type Values } from '../../kit/dialog.ts';
import {
  Card,
  Code,
  Facts,
  Failed,
  Loading,
  Pending,
  Pill,
  Table,
  Time,
  View,
} from '../../kit/elements.ts';
import { countText, durationText, isPast } from '../../kit/format.ts';
import { html, useMemo, useState } from '../../kit/html.ts';
import { Plot } from '../../kit/plot.ts';
import { go } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { attemptPlots, RangeTabs, useRange } from '../steps.ts';
import { answerOf, type Delivery, deliveryColumns } from './deliveries.ts';
import { ENDPOINT_FIELDS, endpointInput } from './endpoints.ts';
import { type Endpoint, HealthPill, healthOf, typesText } from './health.ts';
import { FailedOrders, HeldCard } from './held.ts';
import { ReplayCard } from './replays.ts';
import { type NewSecret, SecretCard, VerifyExample } from './secret.ts';

type Figures = Shown<typeof figures>;

const SHOWN = 15;
const EVERY_MS = 3_000;

export default function EndpointView({ ids }: ViewProps) {
  const id = ids[0] ?? '';
  const path = `/api/endpoints/${encodeURIComponent(id)}`;
  const { data, problem, reload } = useData<Endpoint>(path, EVERY_MS);
  const recent = useData<Page<Delivery>>(
    `/api/deliveries?endpoint_id=${encodeURIComponent(id)}&limit=100`,
    EVERY_MS,
  );
  const figures = useData<Figures>(`${path}/figures?step=hour`, 60_000);
  const [made, setMade] = useState<NewSecret | undefined>(undefined);
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  const again = () => {
    reload();
    recent.reload();
  };
  const [tone] = healthOf(data);
  const rows = recent.data?.data;
  return html`<${View}
    title="Endpoint"
    lead=${html`<span class="break">${data.url}</span> <${HealthPill} endpoint=${data} />`}
    actions=${html`<${Actions} endpoint=${data} path=${path} made=${setMade} done=${again} />`}
  >
    <${Failed} problem=${problem} retry=${reload} />
    ${made && html`<${SecretCard} made=${made} done=${() => setMade(undefined)} />`}
    ${
      data.state === 'disabled' && html`<${HeldCard} endpoint=${data} path=${path} done=${again} />`
    }
    <div class="columns">
      <${Card} title="Health" tone=${tone}>
        <${Facts} pairs=${[...healthFacts(data), ...lastFacts(rows ?? [], figures.data)]} />
        <${Strip} rows=${rows ?? []} />
        <${FailedOrders} endpoint=${data} done=${again} />
      <//>
      <${Card} title="Settings"><${Facts} pairs=${settingFacts(data)} /><//>
    </div>
    <${OverTime} path=${path} />
    <${Card}
      title="Recent deliveries"
      aside=${html`<a href=${`/deliveries?endpoint_id=${id}`}>all</a>`}
    >
      <${Failed} problem=${recent.problem} retry=${recent.reload} />
      <${Table}
        rows=${rows?.slice(0, SHOWN)}
        columns=${deliveryColumns(true)}
        keyOf=${(delivery: Delivery) => delivery.id}
        empty="Nothing yet. Send a test, or wait for an event of its types."
      />
    <//>
    <${ReplayCard} endpoint=${data} path=${path} />
    ${data.filter !== null && html`<${FilterCard} path=${path} owner=${data.created_by} />`}
    ${!made && html`<${Card}><${VerifyExample} /><//>`}
  <//>`;
}

/** Whether the filter lets an example of a type, or a recorded event, pass. */
function FilterCard({ path, owner }: { path: string; owner: string }) {
  const [tested, setTested] = useState<Shown<typeof filterTest> | undefined>(undefined);
  const test = async ({ type = '' }: Values) => {
    const named = type.startsWith('evt_') ? { event_id: type } : { type };
    setTested(await call('POST', `${path}/filter/test`, named));
  };
  const hint = 'A type, whose example is tested, or the id of an event, evt_…';
  const fields = [{ name: 'type', label: 'Type or event', value: 'operation.settled', hint }];
  return html`<${Card} title="Test the filter">
    <${Form} needs=${['manage']} ownedBy=${owner} fields=${fields} label="Test" order=${test} />
    ${
      tested &&
      html`<p role="status">
          ${
            tested.matches
              ? html`<${Pill} tone="good">it is delivered<//>`
              : html`<${Pill} tone="warn">it is not delivered<//>`
          }
        </p>
        <pre tabindex="0">${JSON.stringify(tested.body, null, 2)}</pre>`
    }
  <//>`;
}

/** Its attempts over the last hour, day or month; the newest are some seconds late. */
function OverTime({ path }: { path: string }) {
  const { range, everyMs } = useRange();
  const { data, problem, reload } = useData<Shown<typeof endpointActivity>>(
    `${path}/activity?range=${range}`,
    everyMs,
  );
  const plots = useMemo(() => data && attemptPlots(data, data.attempts), [data]);
  return html`<${Card} title="Over time" aside=${html`<${RangeTabs} range=${range} />`}>
    <${Failed} problem=${problem} retry=${reload} />
    ${!data && !problem && html`<${Loading} />`}
    <div class="columns plots">
      ${plots?.map((plot) => html`<${Plot} key=${plot.label} ...${plot} />`)}
    </div>
  <//>`;
}

function healthFacts({ health, state, state_at: at }: Endpoint): [string, unknown][] {
  const { consecutive_failures: failures, failing_since: since, paused_until: until } = health;
  return [
    [state === 'enabled' ? 'Enabled' : 'Disabled', html`<${Time} at=${at} />`],
    ['Failures in a row', String(failures)],
    ['Failing since', since && html`<${Time} at=${since} />`],
    ['Next attempt', until && !isPast(until) && html`<${Time} at=${until} />`],
    ['Last success', html`<${Time} at=${health.last_success_at} />`],
  ].map(([name, value]) => [String(name), value || null]);
}

/** What its receiver answered last when it failed, and how the last day went. */
function lastFacts(rows: readonly Delivery[], figures: Figures | undefined): [string, unknown][] {
  const failed = rows.find(({ failing, state }) => failing || state === 'exhausted');
  const day = figures?.total;
  return [
    [
      'Last failure',
      failed &&
        html`<a href=${`/deliveries/${failed.id}`}>
          ${answerOf(failed) ?? 'no answer'}
        </a>`,
    ],
    [
      'In 24 hours',
      day && `${countText(day.delivered)} delivered, ${countText(day.failed)} failed attempts`,
    ],
    ['Succeeded', day && `${(day.success_rate * 100).toFixed(1)} % of them`],
    ['95 % of them took at most', day && durationText(day.p95_ms)],
  ];
}

function settingFacts(endpoint: Endpoint): [string, unknown][] {
  const { rate_per_s: rate, header_names: headers, keys, public_key: publicKey } = endpoint;
  const { certificate_expires_at: expires } = endpoint;
  const ending = keys.filter(({ until }) => until !== null);
  return [
    ['Id', html`<${Code} text=${endpoint.id} />`],
    ['Description', endpoint.description],
    ['Events', typesText(endpoint.event_types)],
    ['Order', endpoint.ordering === 'subject' ? 'in order per subject' : 'any order'],
    ['Filter', endpoint.filter === null ? null : filterText(endpoint.filter)],
    ['At most', rate === null ? 'no limit' : `${rate} per second`],
    ['Retries after', endpoint.retry_schedule?.map((s) => durationText(s * 1_000)).join(', ')],
    ['Timeout', endpoint.timeout_ms && durationText(endpoint.timeout_ms)],
    ['In flight at once', endpoint.max_in_flight && `${endpoint.max_in_flight} at most`],
    ['Signatures', endpoint.signing.join(' and ')],
    ['Public key', publicKey && html`<${Code} text=${publicKey} />`],
    ['Extra headers', headers.join(', ')],
    ['Authentication', endpoint.auth.map((kind) => AUTH_WORDS[kind]).join(', ')],
    ['Certificate ends', expires && html`<${Time} at=${expires} />`],
    ...ending.map(({ scheme, until }): [string, unknown] => [
      `Former ${scheme} key`,
      html`signs too, ends <${Time} at=${until} />`,
    ]),
    ['Owner', endpoint.created_by],
    ['Created', html`<${Time} at=${endpoint.created_at} />`],
  ];
}

const filterText = (filter: unknown) => html`<code>${JSON.stringify(filter)}</code>`;

const MARKS: Record<string, string> = { delivered: 'good', exhausted: 'bad' };

/** The latest deliveries as marks, the newest on the right. */
function Strip({ rows }: { rows: readonly Delivery[] }) {
  if (rows.length === 0) return null;
  const markOf = ({ state, failing }: Delivery) => MARKS[state] ?? (failing ? 'warn' : 'none');
  const count = (mark: string) => rows.filter((row) => markOf(row) === mark).length;
  const text = `Of the latest ${rows.length}: ${count('good')} delivered, ${count('warn')} to be
    tried again, ${count('bad')} given up`;
  return html`<div class="strip" aria-hidden="true">
      ${rows.toReversed().map(
        (row) => html`<a
          tabindex="-1"
          class=${markOf(row)}
          title=${`${row.event_type}, ${row.state}`}
          href=${`/deliveries/${row.id}`}
        ></a>`,
      )}
    </div>
    <p class="muted">${text}</p>`;
}

function Actions({
  endpoint,
  path,
  made,
  done,
}: {
  endpoint: Endpoint;
  path: string;
  made: (secret: NewSecret) => void;
  done: () => void;
}) {
  const { id, state } = endpoint;
  return html`<${Order}
      ownedBy=${endpoint.created_by}
      label="Send a test"
      text="An endpoint.test event is sent to this endpoint only. Its delivery is opened."
      disabled=${state === 'disabled'}
      order=${() => sendTest(id, path)}
    />
    <${Order}
      ownedBy=${endpoint.created_by}
      label="Change"
      kind="quiet"
      text="Deliveries that are being sent are not affected."
      fields=${fieldsOf(endpoint)}
      order=${(values: Values) => call('PATCH', path, endpointInput(values))}
      done=${done}
    />
    <${Order}
      ownedBy=${endpoint.created_by}
      label="Rotate the secret"
      kind="quiet"
      text="A new secret is made and shown once. The present one also signs until the overlap ends."
      fields=${[
        {
          name: 'hours',
          label: 'Overlap in hours',
          type: 'number',
          value: '24',
          hint: '0 ends the present secret at once',
        },
      ]}
      order=${async ({ hours = '24' }: Values) =>
        made(await call('POST', `${path}/rotate`, { overlap_s: Math.round(Number(hours) * 3600) }))}
      done=${done}
    />
    ${
      state === 'enabled' &&
      html`<${Order}
      ownedBy=${endpoint.created_by}
        label="Disable"
        kind="quiet"
        text="Its deliveries are held until it is enabled again."
        order=${() => call('POST', `${path}/disable`)}
        done=${done}
      />`
    }
    <${Order}
      ownedBy=${endpoint.created_by}
      label="Delete"
      kind="danger"
      text="Its pending deliveries are cancelled and its secret is erased. This cannot be undone."
      order=${() => call('DELETE', path)}
      done=${() => go('/endpoints')}
    />`;
}

function fieldsOf(endpoint: Endpoint) {
  const {
    kind,
    url,
    description,
    event_types: types,
    ordering,
    rate_per_s: rate,
    filter,
  } = endpoint;
  const present: Record<string, string> = {
    url,
    ordering,
    event_types: types.join(', '),
    description: description ?? '',
    rate_per_s: rate === null ? '' : String(rate),
    filter: filter === null ? '' : JSON.stringify(filter, null, 2),
    retry_schedule: endpoint.retry_schedule?.join(', ') ?? '',
    timeout_ms: String(endpoint.timeout_ms ?? ''),
    max_in_flight: String(endpoint.max_in_flight ?? ''),
  };
  // A destination is changed as a whole, with its credentials, which no page knows.
  const fields = ENDPOINT_FIELDS.filter(({ name }) => {
    return name !== 'destination' && (name !== 'url' || kind === 'http');
  });
  return fields.map((field) => ({ ...field, value: present[field.name] ?? '' }));
}

async function sendTest(id: string, path: string): Promise<void> {
  const { event_id: event } = await call<{ event_id: string }>('POST', `${path}/test`);
  const query = `endpoint_id=${id}&event_id=${event}`;
  const { data } = await call<Page<Delivery>>('GET', `/api/deliveries?${query}`);
  go(data[0] ? `/deliveries/${data[0].id}` : `/deliveries?${query}`);
}
