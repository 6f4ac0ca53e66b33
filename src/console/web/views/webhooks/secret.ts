/** A new signing secret, which is shown once, and how a receiver verifies with it. */
import type { endpointWithKeys } from '../../../../resources/delivery/endpoint.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { Card, Code, Tabs } from '../../kit/elements.ts';
import { html, useState } from '../../kit/html.ts';

/** What the API answers where it makes keys. */
export type NewSecret = Pick<Shown<typeof endpointWithKeys>, 'id' | 'secret' | 'new_public_key'>;

const EXAMPLES: Record<string, string> = {
  library: `import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

app.post('/hooks', async (c) => {
  // The body as it arrived, before anything parses it.
  const event = webhook.verify(await c.req.text(), c.req.header());
  await store(event.id, event); // The same id may arrive twice.
  return c.body(null, 204);
});`,
  node: `import { createHmac, timingSafeEqual } from 'node:crypto';

function verify(body, headers) {
  const { 'webhook-id': id, 'webhook-timestamp': at } = headers;
  if (Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const key = Buffer.from(process.env.WEBHOOK_SECRET.slice('whsec_'.length), 'base64');
  const digest = createHmac('sha256', key).update(\`\${id}.\${at}.\${body}\`).digest('base64');
  const expected = Buffer.from(\`v1,\${digest}\`);
  // One signature per key: several while a rotation overlaps.
  return headers['webhook-signature']
    .split(' ')
    .map((text) => Buffer.from(text))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}`,
};

export function SecretCard({ made, done }: { made: NewSecret; done: () => void }) {
  const { secret, new_public_key: publicKey } = made;
  const hide = html`<button type="button" class="quiet" onClick=${done}>I have stored it</button>`;
  return html`<${Card} tone="good" title="Signing secret" aside=${hide}>
    <p>It is shown this once. Store it where the receiver reads its secrets.</p>
    ${secret && html`<p><${Code} text=${secret} whole /></p>`}
    ${
      publicKey &&
      html`<p>
        <span class="muted">Public key, for receivers that verify v1a signatures</span><br />
        <${Code} text=${publicKey} whole />
      </p>`
    }
    <${VerifyExample} />
  <//>`;
}

/** Code of a receiver that checks the signature of a webhook. */
export function VerifyExample() {
  const [chosen, setChosen] = useState('library');
  return html`<h3>Verify a webhook</h3>
    <${Tabs}
      tabs=${[['library', 'with standardwebhooks'], ['node', 'with Node alone']]}
      chosen=${chosen}
      onChange=${setChosen}
    />
    <pre tabindex="0">${EXAMPLES[chosen]}</pre>`;
}
