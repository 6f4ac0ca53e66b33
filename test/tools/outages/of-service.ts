/** Outages of the service, and of the way to it. */
import type { FaultInput } from '../../../src/sandbox/faults/kinds.ts';
import type { Outage } from './run.ts';
import type { Scene } from './scene.ts';

const DAY = 86_400_000;
const ALWAYS = { count: 1_000_000_000 };
const WRITES = { method: 'POST', path: '/v1/app/*', ...ALWAYS };
const MINTS = { method: 'POST', path: '/v1/chain/*', ...ALWAYS };
const LONG_MS = 600_000;

const misbehave =
  (...faults: FaultInput[]) =>
  async ({ sandbox }: Scene) => {
    for (const fault of faults) sandbox.control.addFault(fault);
  };
const behave = async ({ sandbox }: Scene) => sandbox.control.clearFaults();

/** Restarts the first daemon, as one does after a change of its environment. */
const restart =
  (env: Record<string, string> = {}) =>
  async ({ units: [unit] }: Scene) => {
    await unit.stop();
    await unit.start({ env });
  };

export const ofService: readonly Outage[] = [
  {
    name: 'service-down',
    what: 'the service refuses connections',
    alert: 'TallyhookServiceUnreachable',
    ready: 200,
    line: /connection_refused/,
    lastsS: 60,
    begin: ({ toService }) => toService.cut(),
    end: ({ toService }) => toService.restore(),
  },
  {
    name: 'service-502',
    what: 'the service answers everything with 502, as its proxy does',
    alert: 'TallyhookServiceUnreachable',
    ready: 200,
    line: /unreachable/,
    lastsS: 60,
    begin: misbehave({ kind: 'status', status: 502, body: '<html>', ...ALWAYS }),
    end: behave,
  },
  {
    name: 'service-5xx-on-writes',
    what: 'the service answers writes with 500, and reads as ever',
    alert: 'TallyhookWritesFailing',
    ready: 200,
    line: undefined,
    lastsS: 45,
    begin: misbehave(
      { kind: 'status', status: 500, ...WRITES },
      { kind: 'status', status: 500, ...MINTS },
    ),
    end: behave,
  },
  {
    name: 'service-hangs',
    what: 'the service applies requests and does not answer',
    alert: 'TallyhookServiceUnreachable',
    ready: 200,
    line: /unreachable/,
    lastsS: 120,
    begin: misbehave({ kind: 'delay', delay_ms: LONG_MS, ...ALWAYS }),
    end: behave,
  },
  {
    name: 'writes-time-out',
    what: 'writes alone get no answer within their deadline',
    alert: 'TallyhookWritesFailing',
    ready: 200,
    line: /unknown/,
    lastsS: 60,
    begin: misbehave(
      { kind: 'delay', delay_ms: LONG_MS, ...WRITES },
      { kind: 'delay', delay_ms: LONG_MS, ...MINTS },
    ),
    end: behave,
  },
  {
    name: 'maintenance',
    what: 'a maintenance window that was not announced',
    alert: 'TallyhookWritesFailing',
    ready: 200,
    line: /maintenance/,
    lastsS: 45,
    begin: async ({ sandbox }) => sandbox.control.maintenance({ state: 'on', message: 'at work' }),
    end: async ({ sandbox }) => sandbox.control.maintenance({ state: 'off' }),
  },
  {
    name: 'client-secret-wrong',
    what: 'the daemon was restarted with a wrong client secret',
    alert: 'TallyhookClientSecretRefused',
    ready: 200,
    line: /"msg":"no client token"/,
    lastsS: 30,
    begin: restart({ UPSTREAM_CLIENT_SECRET: 'wrong' }),
    end: restart(),
  },
  {
    name: 'token-expired',
    what: 'the service ends all tokens before their time',
    alert: undefined,
    ready: 200,
    line: undefined,
    lastsS: 45,
    begin: async ({ sandbox: { world } }) => {
      for (const key of [...world.grants.keys()]) {
        const grant = world.grants.get(key);
        if (grant) world.grants.put(key, { ...grant, expires_at: world.now() - DAY });
      }
    },
    end: async () => {},
  },
  {
    name: 'name-lookup-fails',
    what: 'the name of the service does not resolve',
    alert: 'TallyhookServiceUnreachable',
    ready: 200,
    line: /name_lookup/,
    lastsS: 75,
    scene: { named: true },
    async begin({ name, toService }) {
      name.resolves = false;
      // What is open needs no name.
      await toService.cut();
      await toService.restore();
    },
    end: async ({ name }) => {
      name.resolves = true;
    },
  },
  {
    name: 'certificate-expired',
    what: 'the certificate of the service has expired',
    alert: 'TallyhookServiceUnreachable',
    ready: 200,
    line: /tls_expired/,
    lastsS: 75,
    scene: { tls: true },
    begin: ({ toService, authority }) =>
      present(toService, authority, { until: '20210101000000Z' }),
    end: ({ toService, authority }) => present(toService, authority, {}),
  },
  {
    name: 'throttled',
    what: 'the service answers all but a request a second with 429',
    alert: 'TallyhookThrottled',
    ready: 200,
    line: undefined,
    lastsS: 60,
    begin: async ({ sandbox }) => sandbox.control.setSwitches({ rate_per_s: 1, rate_burst: 1 }),
    end: async ({ sandbox }) => sandbox.control.setSwitches({ rate_per_s: null }),
  },
];

async function present(
  relay: Scene['toService'],
  authority: Scene['authority'],
  wanted: { until?: string },
): Promise<void> {
  const issued = await authority?.issue(`service-${wanted.until ?? 'renewed'}`, wanted);
  if (issued) await relay.present(issued);
}
