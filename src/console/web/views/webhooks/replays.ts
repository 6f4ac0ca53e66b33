/** Events of a time are sent to an endpoint again: first they are counted, then followed. */

import { type replay, WHICH, WHICH_WORDS } from '../../../../resources/delivery/delivery.ts';
import { DAY_MS } from '../../../../resources/local-time.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, type Page, useData, withQuery } from '../../kit/api.ts';
import { type Field, Form, Order, type Values } from '../../kit/dialog.ts';
import { Card, State, Table, Time } from '../../kit/elements.ts';
import { countText, inputText, instantOf, readersNow } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import type { Endpoint } from './health.ts';

type Replay = Shown<typeof replay>;

const EVERY_MS = 3_000;
const SHOWN = 5;

export function ReplayCard({ endpoint, path }: { endpoint: Endpoint; path: string }) {
  const { id, created_by: owner, health } = endpoint;
  const list = useData<Page<Replay>>(
    withQuery('/api/replays', { endpoint_id: id, limit: String(SHOWN) }),
    EVERY_MS,
  );
  const [counted, setCounted] = useState<{ of: Replay; request: object } | undefined>(undefined);
  const from = health.failing_since ?? readersNow() - DAY_MS;
  const count = async (values: Values) => {
    const request = requestOf(values);
    setCounted({
      of: await call('POST', `${path}/replay`, { ...request, dry_run: true }),
      request,
    });
  };
  const begun = () => {
    setCounted(undefined);
    list.reload();
  };
  const rows = list.data?.data ?? [];
  return html`<${Card} title="Send events again">
    <p class="muted">
      Receivers know events that they had by their ids, which stay the same. Counting sends nothing.
    </p>
    <${Form}
      needs=${['manage']}
      ownedBy=${owner}
      fields=${fieldsOf(inputText(from))}
      label="Count them"
      order=${count}
    />
    ${
      counted &&
      html`<div role="status">
        <p>
          <b>${countText(counted.of.queued)}</b> of ${countText(counted.of.examined)} events would
          be sent.
        </p>
        ${
          counted.of.queued > 0 &&
          html`<${Order}
            ownedBy=${owner}
            label=${`Send ${countText(counted.of.queued)} again`}
            text="They are sent in the background, the oldest first."
            order=${() => call('POST', `${path}/replay`, counted.request)}
            done=${begun}
          />`
        }
      </div>`
    }
    ${
      rows.length > 0 && html`<${Table} rows=${rows} columns=${columnsOf(owner, begun)} empty="" />`
    }
  <//>`;
}

function fieldsOf(from: string): Field[] {
  const options = WHICH.map((which): [string, string] => [which, WHICH_WORDS[which]]);
  return [
    { name: 'since', label: 'Recorded from', type: 'datetime-local', value: from.slice(0, 16) },
    { name: 'until', label: 'And before', type: 'datetime-local', optional: true },
    { name: 'which', label: 'Which', type: 'choice', options },
  ];
}

function requestOf({ since, until, which }: Values): object {
  return { since: instantOf(since), ...(until ? { until: instantOf(until) } : {}), which };
}

const columnsOf = (owner: string, done: () => void) => [
  { head: 'Begun', of: ({ created_at: at }: Replay) => html`<${Time} at=${at} />` },
  { head: 'From', of: ({ since }: Replay) => html`<${Time} at=${since} exact />` },
  { head: 'State', of: ({ state }: Replay) => html`<${State} of=${state} />` },
  {
    head: 'Examined',
    number: true,
    of: ({ progress }: Replay) => progress !== null && `${Math.round(progress * 100)} %`,
  },
  { head: 'Queued', number: true, of: ({ queued }: Replay) => countText(queued) },
  {
    head: '',
    of: ({ id, state }: Replay) =>
      state === 'running' &&
      html`<${Order}
        ownedBy=${owner}
        label="Stop"
        kind="quiet"
        text="What it has queued is still sent."
        order=${() => call('POST', `/api/replays/${id}/cancel`)}
        done=${done}
      />`,
  },
];
