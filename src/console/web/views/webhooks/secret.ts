/** A new signing secret, which is shown once, and how a receiver verifies with it. */
import type { endpointWithKeys } from '../../../../resources/delivery/endpoint.ts';
import { SAMPLES } from '../../../../resources/delivery/samples.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { Card, Code, Tabs } from '../../kit/elements.ts';
import { html, useState } from '../../kit/html.ts';

/** What the API answers where it makes keys. */
export type NewSecret = Pick<Shown<typeof endpointWithKeys>, 'id' | 'secret' | 'new_public_key'>;

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

/** Receivers that check the signature of a webhook, in several languages. */
export function VerifyExample() {
  const [chosen, setChosen] = useState('JavaScript');
  const sample = SAMPLES.find(({ language }) => language === chosen);
  return html`<h3>Verify a webhook</h3>
    <${Tabs}
      tabs=${SAMPLES.map(({ language }) => [language, language])}
      chosen=${chosen}
      onChange=${setChosen}
    />
    <pre tabindex="0">${sample && `${sample.install}\n${sample.start}`}</pre>
    <pre tabindex="0">${sample?.code}</pre>`;
}
