/** A daemon whose service and receivers are behind a forward proxy with a login. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { type DaemonProcess, environmentOf, startDaemon } from '../harness/daemon.ts';
import { type ForwardProxy, startForwardProxy } from '../harness/forward-proxy.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { useWorld } from '../harness/rig.ts';

const LOGIN = { user: 'daemon', password: 'hush-proxy' };
const SERVICE = 'service.test:80';
const RECEIVER = 'receiver.test:80';

const world = await useWorld();
const ports: Record<string, number> = {};
let receiver: Receiver;
let proxy: ForwardProxy;
let daemon: DaemonProcess;
let app: App;

beforeAll(async () => {
  receiver = await startReceiver();
  ports[SERVICE] = Number(new URL(world.sandbox.url).port);
  ports[RECEIVER] = receiver.port;
  proxy = await startForwardProxy({ login: LOGIN, ports });
  const env = {
    ...environmentOf(world.database.url, `http://${SERVICE.replace(':80', '')}`),
    http_proxy: proxy.url,
  };
  daemon = await startDaemon(world, { webhooks: { proxy_resolves_names: true } }, env);
  app = makeApp(() => daemon.url);
});
afterAll(async () => {
  await daemon?.kill();
  await proxy?.close();
  await receiver?.close();
});

it('Writes, polls and webhooks go through the proxy, and its login is shown nowhere', async () => {
  const url = 'http://receiver.test/hook';
  const made = await app.call('POST', '/api/endpoints', { url, event_types: ['operation.*'] });
  expect(made.status).toBe(201);
  expect((await app.give(world.ada, 5)).status).toBe(200);
  expect((await receiver.next()).headers.host).toBe('receiver.test');
  await app.until(({ type }) => type === 'operation.settled');
  expect(new Set(proxy.targets)).toEqual(new Set([SERVICE, RECEIVER]));
  const settings = (await app.call('GET', '/api/settings')).text;
  expect(settings).toContain(new URL(proxy.url).host);
  expect(settings + daemon.output()).not.toMatch(/hush-proxy|aHVzaC1wcm94e|OmhHVzaC1wcm94e/);
});

it('A proxy that goes away is named, writes were not sent, and go on when it is back', async () => {
  const port = Number(new URL(proxy.url).port);
  await proxy.close();
  const refused = await app.give(world.ada, 7);
  expect(refused).toMatchObject({
    status: 502,
    json: { code: 'upstream_not_reached', detail: expect.stringMatching(/^proxy_unreachable: /) },
  });
  const id = String(refused.headers['tallyhook-operation']);
  const { json } = await app.call('GET', `/api/operations/${id}`);
  expect(json.outcome).toBe('not_executed');
  proxy = await startForwardProxy({ login: LOGIN, ports, port });
  expect((await app.give(world.ada, 8)).status).toBe(200);
});
