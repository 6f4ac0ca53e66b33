/** A sandbox with a thousand tokens in memory, to be pressed. Says port, token and addresses. */
import { systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';

const TOKENS = 1_000n;
const clientId = 'bench';
const clientSecret = 'bench';
const sandbox = await startSandbox({ seed: 1, clientId, clientSecret, clock: systemClock });
const { control, port, url } = sandbox;
const addr = control.state().members[0]?.addr ?? '';
for (let id = 1n; id <= TOKENS; id += 1n) {
  control.setToken(1n, id, {
    owner: addr,
    uri: `https://tokens.example/metadata/${id}.json`,
    metadata: JSON.stringify({ name: `Token ${id}`, series: 'bench' }),
    extra: JSON.stringify({ level: Number(id) }),
  });
}
const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
const response = await fetch(`${url}/v1/oauth/token`, {
  method: 'POST',
  headers: { authorization },
  body: new URLSearchParams({ grant_type: 'client_credentials' }),
});
const { access_token } = JSON.parse(await response.text());
const ready = { port: String(port), addr, token: access_token, authorization };
process.stdout.write(`${JSON.stringify(ready)}\n`);
process.once('SIGTERM', () => process.exit(0));
