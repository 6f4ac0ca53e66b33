/** TLS towards the service: each fault of a handshake has a stable code, and nothing is sent. */
import { afterEach, expect, it } from 'vitest';
import { FAULTY, useFaultyServers } from '../harness/faulty-tls.ts';
import { closeAll, post, transportWith } from './rig.ts';

const servers = useFaultyServers();
afterEach(closeAll);

const exchange = (what: string) =>
  transportWith().exchange('app-write', post(`https://127.0.0.1:${servers.portOf(what)}`));

it('A service with a certificate of a known authority answers', async () => {
  expect(await exchange('good')).toMatchObject({ end: 'answered' });
});

it.each(FAULTY)('A service that is %s has the fault %s', async (what, cause) => {
  expect(await exchange(what)).toMatchObject({ cause });
});
