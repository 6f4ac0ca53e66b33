/** Deliveries that an endpoint still owes: released when it is enabled, or retried at once. */
import { call, type Page, useData } from '../../kit/api.ts';
import { Order } from '../../kit/dialog.ts';
import { Card } from '../../kit/elements.ts';
import { countText } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import type { Delivery } from './deliveries.ts';
import type { Endpoint } from './health.ts';

const COUNTED_MAX = 500;

/** How many, as far as they are counted. */
function useCount(endpointId: string, state: string) {
  const path = `/api/deliveries?endpoint_id=${endpointId}&state=${state}&limit=${COUNTED_MAX}`;
  const { data } = useData<Page<Delivery>>(path, 10_000);
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
        label="Enable and release"
        text="What was held is sent, in the order of the events."
        order=${enable('release')}
        done=${done}
      />
      <${Order}
        label="Enable and skip"
        kind="danger"
        text="What was held is cancelled: the receiver never gets it. It can still read the feed."
        order=${enable('skip')}
        done=${done}
      />
    </div>
  <//>`;
}

/** Retries what failed, one delivery after the other. */
export function RetryFailed({ endpoint, done }: { endpoint: Endpoint; done: () => void }) {
  const exhausted = useCount(endpoint.id, 'exhausted').rows;
  const pending = useCount(endpoint.id, 'pending').rows.filter(({ attempts }) => attempts > 0);
  const [sent, setSent] = useState<number | undefined>(undefined);
  const rows = [...exhausted, ...pending].toSorted((a, b) => a.id.localeCompare(b.id));
  if (endpoint.state === 'disabled' || rows.length === 0) return null;
  const retry = async () => {
    for (const [n, { id }] of rows.entries()) {
      setSent(n);
      await call('POST', `/api/deliveries/${id}/retry`);
    }
  };
  return html`<p class="actions">
    <${Order}
      label="Retry what failed"
      kind="quiet"
      text=${html`${countText(rows.length)} deliveries are sent again, the oldest first.
      ${sent !== undefined && html`<span role="status">${sent} of ${rows.length}</span>`}`}
      order=${retry}
      done=${() => {
        setSent(undefined);
        done();
      }}
    />
  </p>`;
}
