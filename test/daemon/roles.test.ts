/** The roles of one installation over three daemons, each of which has a part of them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { operationIdOf, useWorld } from '../harness/rig.ts';

const world = await useWorld();
let receiver: Receiver;
const daemons: DaemonProcess[] = [];
let [gateway, api, delivery]: App[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  const env = environmentOf(world.database.url, world.sandbox.url);
  for (const roles of ['gateway', 'api, workers', 'delivery'])
    daemons.push(await spawnDaemon({ ...env, TALLYHOOK_ROLES: roles }, QUICK));
  [gateway, api, delivery] = daemons.map(({ url }) => makeApp(() => url));
});
afterAll(async () => {
  await Promise.all(daemons.map((daemon) => daemon.kill()));
  await receiver?.close();
});

async function spawnGateways(count: number): Promise<void> {
  const env = environmentOf(world.database.url, world.sandbox.url);
  for (let n = 0; n < count; n++)
    daemons.push(await spawnDaemon({ ...env, TALLYHOOK_ROLES: 'gateway' }, QUICK));
}

const ready = (app?: App) => app?.call('GET', '/readyz');
const doctor = async () => {
  const env = environmentOf(world.database.url, world.sandbox.url);
  const { text } = await runCommand(env, 'doctor', '--json');
  const { checks } = JSON.parse(text.slice(text.indexOf('{')));
  return checks.find(({ check }: { check: string }) => check === 'roles');
};

it('A write passes from the gateway of one daemon to the workers and webhooks of others', async () => {
  const input = { url: `${receiver.url}/hook`, event_types: ['operation.settled'] };
  expect((await api?.call('POST', '/api/endpoints', input))?.status).toBe(201);
  const given = await gateway?.give(world.ada, 5);
  expect(given?.status).toBe(200);
  const { body } = await receiver.next(60_000);
  expect(JSON.parse(body).data.operation_id).toBe(given && operationIdOf(given));
});

it('A write that waits for the service is sent by the gateway', async () => {
  world.sandbox.control.maintenance({ state: 'on' });
  const queued = await gateway?.give(world.ben, 6, { prefer: 'respond-async' });
  world.sandbox.control.maintenance({ state: 'off' });
  expect(queued?.status).toBe(202);
  const id = queued && operationIdOf(queued);
  await api?.until(({ type, data }) => type === 'operation.settled' && data.operation_id === id);
});

it('A request for a role that a daemon lacks is refused with what to do, and not sent', async () => {
  for (const [app, path, role] of [
    [gateway, '/api/status', 'api'],
    [delivery, '/api/openapi', 'api'],
    [api, '/v1/app/token/account', 'gateway'],
    [delivery, '/v1/app/token/account', 'gateway'],
  ] as const) {
    const answer = await app?.call('GET', path);
    expect(answer).toMatchObject({ status: 421, json: { code: 'role_missing' } });
    expect(answer?.json.detail).toBe(`send this request to a daemon with the role ${role}`);
  }
  expect((await api?.give(world.ada, 4_242))?.json.code).toBe('role_missing');
  const effects = world.sandbox.control.effects(0n, 10_000);
  expect(effects.filter(({ amount }) => amount === 4_242n)).toEqual([]);
});

it('Each daemon names its roles, and the status counts the daemons of each role', async () => {
  await expect
    .poll(async () => (await ready(delivery))?.json)
    .toEqual({
      status: 'ok',
      roles: ['delivery'],
      delivery: 'running',
    });
  const gatewayReady = async () => (await ready(gateway))?.json;
  await expect.poll(gatewayReady).toEqual({ status: 'ok', roles: ['gateway'] });
  const counts = async () => (await api?.call('GET', '/api/status'))?.json.daemons;
  await expect.poll(counts).toEqual({ gateway: 1, api: 1, workers: 1, delivery: 1 });
  await expect.poll(doctor).toMatchObject({ ok: true });
});

it('The polling budget is divided among the daemons with workers, not among gateways', async () => {
  await spawnGateways(2);
  // After the maintenance of a test above, the rate rises to that of the settings.
  const budget = async () => (await api?.call('GET', '/api/status'))?.json.budget;
  const roles = async () => (await api?.call('GET', '/api/status'))?.json.daemons;
  await expect.poll(roles).toMatchObject({ gateway: 3, workers: 1 });
  await expect.poll(budget, { timeout: 40_000 }).toMatchObject({
    setting_per_s: 200,
    by_apps_per_s: null,
    learned_per_s: null,
    effective_per_s: 200,
    rate_per_s: 200,
  });
});

it('A daemon with workers polls a wallet before the first write of a gateway on it', async () => {
  const addr = `0x77${'0'.repeat(38)}`;
  world.sandbox.control.setWallet(addr, { amt_token: 1n });
  expect((await gateway?.give(addr, 7))?.status).toBe(200);
  const all = world.sandbox.control.requests(0, 10_000);
  const poll = all.findIndex(({ path, query }) => `${path}?${query}`.includes(addr));
  const write = all.findLastIndex(({ endpoint }) => endpoint === 'give');
  expect(poll).toBeGreaterThan(0);
  expect(poll).toBeLessThan(write);
});

it('Without a daemon that delivers, the doctor says which role is missing', async () => {
  await daemons[2]?.stop();
  await expect.poll(doctor).toMatchObject({
    ok: false,
    found: expect.stringMatching(/^no living daemon performs delivery; start one with TALLYHOOK_R/),
  });
});
