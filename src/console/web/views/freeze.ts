/** Stops all writes, and allows them again. */
import { call } from '../kit/api.ts';
import { Order, REASON } from '../kit/dialog.ts';
import { html } from '../kit/html.ts';

export function Freeze({ freeze, done }: { freeze: object | null; done: () => void }) {
  if (freeze)
    return html`<${Order}
      label="Allow writes again"
      text="Writes of apps are accepted again, and queued ones are sent."
      fields=${[REASON]}
      order=${(values: object) => call('POST', '/api/unfreeze', values)}
      done=${done}
    />`;
  return html`<${Order}
    label="Freeze writes"
    kind="danger"
    text="No write of any app is accepted or sent until it is released. Reads, polls, webhooks and
      reports go on."
    fields=${[REASON]}
    order=${(values: object) => call('POST', '/api/freeze', values)}
    done=${done}
  />`;
}
