/** Deliveries that an endpoint still owes, or that failed for good: orders for many at once. */
import { call, type Page, useData } from '../../kit/api.ts';
import { Order } from '../../kit/dialog.ts';
import { Card } from '../../kit/elements.ts';
import { countText } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import type { Endpoint } from './health.ts';

/** What orders need to know of a delivery. */
interface Owed {
  id: string;
  failing: boolean;
}

const COUNTED_MAX = 500;

/** How many, as far as they are counted. */
function useCount(endpointId: string, state: string) {
  const path = `/api/deliveries?endpoint_id=${endpointId}&state=${state}&limit=${COUNTED_MAX}`;
  const { data } = useData<Page<Owed>>(path, 10_000);
  const rows = data?.data ?? [];
  return { rows, text: `${data?.next_cursor ? 'more than ' : ''}${countText(rows.length)}` };
}

export function HeldCard({
  endpoint,
  path,
  done,
}: {
  endpoint: Endpoint;
  path: string;
  done: () => void;
}) {
  const { text } = useCount(endpoint.id, 'held');
  const enable = (held: string) => () => call('POST', `${path}/enable`, { held });
  return html`<${Card} tone="warn" title="This endpoint is disabled">
    <p>
      <a href=${`/deliveries?endpoint_id=${endpoint.id}&state=held`}>${text} deliveries</a> are held
      until it is enabled.
    </p>
    <div class="actions">
      <${Order}
        ownedBy=${endpoint.created_by}
        label="Enable and release"
        text="What was held is sent, in the order of the events."
        order=${enable('release')}
        done=${done}
      />
      <${Order}
        ownedBy=${endpoint.created_by}
        label="Enable and skip"
        kind="danger"
        text="What was held is cancelled: the receiver never gets it. It can still read the feed."
        order=${enable('skip')}
        done=${done}
      />
    </div>
  <//>`;
}

/** Retries what failed, or gives up what failed for good, one delivery after the other. */
export function FailedOrders({ endpoint, done }: { endpoint: Endpoint; done: () => void }) {
  const exhausted = useCount(endpoint.id, 'exhausted').rows;
  const pending = useCount(endpoint.id, 'pending').rows.filter(({ failing }) => failing);
  const failed = [...exhausted, ...pending].toSorted((a, b) => a.id.localeCompare(b.id));
  return html`<p class="actions">
    ${
      endpoint.state === 'enabled' &&
      failed.length > 0 &&
      html`<${OrderForEach}
        ownedBy=${endpoint.created_by}
        label="Retry what failed"
        rows=${failed}
        action="retry"
        text="are sent again, the oldest first."
        done=${done}
      />`
    }
    ${
      exhausted.length > 0 &&
      html`<${GiveUp} ownedBy=${endpoint.created_by} rows=${exhausted} done=${done} />`
    }
  </p>`;
}

/** Ends deliveries whose every attempt failed, so that they wait no longer. */
export function GiveUp({
  ownedBy,
  rows,
  done,
}: {
  /** Of the endpoint, if they have one. */
  ownedBy?: string;
  rows: readonly Owed[];
  done: () => void;
}) {
  return html`<${OrderForEach}
    ownedBy=${ownedBy}
    label=${`Give up ${countText(rows.length)}`}
    rows=${rows}
    action="cancel"
    text="failed for good and are cancelled. The receiver can read their events in the feed, and a
      retry or a replay still sends them."
    done=${done}
  />`;
}

function OrderForEach({
  ownedBy,
  label,
  rows,
  action,
  text,
  done,
}: {
  ownedBy: string | undefined;
  label: string;
  rows: readonly Owed[];
  action: 'retry' | 'cancel';
  text: string;
  done: () => void;
}) {
  const [sent, setSent] = useState<number | undefined>(undefined);
  const order = async () => {
    for (const [n, { id }] of rows.entries()) {
      setSent(n);
      await call('POST', `/api/deliveries/${id}/${action}`);
    }
  };
  return html`<${Order}
    ownedBy=${ownedBy}
    label=${label}
    kind="quiet"
    text=${html`${countText(rows.length)} deliveries ${text}
      ${sent !== undefined && html`<span role="status">${sent} of ${rows.length}</span>`}`}
    order=${order}
    done=${() => {
      setSent(undefined);
      done();
    }}
  />`;
}
