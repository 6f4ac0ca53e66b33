/** Commands say in words what is wrong with TLS, of the service and of a daemon behind a proxy. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { faultText } from '../../src/resources/faults.ts';
import { runCommand } from '../harness/command.ts';
import { ADMIN_KEY, environmentOf } from '../harness/daemon.ts';
import { useFaultyServers } from '../harness/faulty-tls.ts';
import { useWorld } from '../harness/rig.ts';

const world = await useWorld();
const servers = useFaultyServers();
const urlOf = (what: string) => `https://127.0.0.1:${servers.portOf(what)}`;
const trusting = () => ({ NODE_EXTRA_CA_CERTS: join(servers.folder, 'ca.crt') });

it('The doctor names the fault of the service', async () => {
  const env = environmentOf(world.database.url, urlOf('expired'));
  const { text } = await runCommand({ ...env, ...trusting() }, 'doctor');
  expect(text).toContain(`FAIL  service: maintenance status: ${faultText('tls_expired')}\n`);
});

it.each([
  ['of another name', 'tls_wrong_host'],
  ['self-signed', 'tls_unknown_ca'],
] as const)(
  'A command names the fault of a daemon whose certificate is %s: %s',
  async (what, fault) => {
    const url = urlOf(what);
    const env = { TALLYHOOK_URL: url, TALLYHOOK_KEY: ADMIN_KEY, ...trusting() };
    const { code, text } = await runCommand(env, 'watches', 'list');
    expect([code, text]).toEqual([1, `${url}: ${faultText(fault)}\n`]);
  },
);
