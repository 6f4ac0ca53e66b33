/** The process that sends webhooks: with its daemon, and without it. */
import { readFile } from 'node:fs/promises';
import { afterEach, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { type DaemonProcess, QUICK, startDaemon } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const started: DaemonProcess[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((daemon) => daemon.kill()));
});
/** Another one, which the test may end. */
const start = async () => {
  const daemon = await startDaemon(rig.world, { daemon: { ...QUICK.daemon, drain_ms: 60_000 } });
  started.push(daemon);
  return daemon;
};

/** False also for a process that has ended but was not yet reaped. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return /\) [^ZX] /.test(stat);
}

const scrape = async () => (await rig.app.call('GET', '/metrics')).text;

it('No delivery process is left when its daemon is killed', async () => {
  const daemon = await start();
  const pid = await daemon.deliveryPid();
  expect(await isRunning(pid)).toBe(true);
  await daemon.kill();
  await expect.poll(() => isRunning(pid)).toBe(false);
});

it('SIGTERM lets both processes finish: a webhook that is being sent is not sent again', async () => {
  const { owner } = rig.world.database;
  const receiver = await rig.receiver();
  receiver.behave({ do: 'hang' }, '/last');
  // The other daemon would send it.
  await rig.daemon.kill();
  const daemon = await start();
  const app = makeApp(() => daemon.url);
  const pid = await daemon.deliveryPid();
  const url = `${receiver.url}/last`;
  const input = { url, event_types: ['operation.accepted'] };
  const { json: endpoint } = await app.call('POST', '/api/endpoints', input);
  expect((await app.give(rig.world.ada, 5)).status).toBe(200);
  await expect.poll(() => receiver.open('/last')).toBe(1);
  const stopped = daemon.stop();
  await expect.poll(daemon.output).toContain('"msg":"stopping"');
  receiver.release();
  expect(await stopped).toBe(0);
  expect(await isRunning(pid)).toBe(false);
  const deliveries = await owner.sql`select state, attempts from tallyhook.deliveries`;
  expect(deliveries.map((row) => ({ ...row }))).toEqual([{ state: 'delivered', attempts: 1 }]);
  await rig.restart();
  await rig.app.call('DELETE', `/api/endpoints/${endpoint.id}`);
});

it('Signals to all processes, as Ctrl+C and systemd send them, leave the delivery process to its daemon', async () => {
  const pid = await rig.daemon.deliveryPid();
  process.kill(pid, 'SIGINT');
  process.kill(pid, 'SIGTERM');
  await rig.subscribe('/signals', ['operation.accepted']);
  const given = await rig.app.give(rig.world.ada, 5);
  await rig.eventOf(given, 'operation.accepted');
  expect(await isRunning(pid)).toBe(true);
});

it('A delivery process that is killed is started again', async () => {
  const pid = await rig.daemon.deliveryPid();
  process.kill(pid, 'SIGKILL');
  const next = await rig.daemon.deliveryPid(2);
  expect(next).not.toBe(pid);
  expect(await isRunning(pid)).toBe(false);
});

it('The scrape of a daemon holds the metrics of both processes, and readiness names the second', async () => {
  await rig.subscribe('/metrics', ['operation.accepted']);
  await rig.app.give(rig.world.ada, 6);
  await expect
    .poll(scrape)
    .toMatch(/^tallyhook_webhook_attempts_total\{result="delivered"\} \d+$/m);
  const text = await scrape();
  for (const name of ['main', 'delivery'])
    expect(text).toMatch(new RegExp(`process_resident_memory_bytes\\{process="${name}"\\} \\d`));
  for (const pool of ['gateway', 'delivery'])
    expect(text).toContain(`tallyhook_database_pool_running{pool="${pool}"}`);
  for (const worker of ['ledger', 'webhooks'])
    expect(text).toContain(`tallyhook_worker_pass_failures_total{worker="${worker}"} 0`);
  expect(text).toMatch(/^tallyhook_delivery_process_up 1$/m);
  expect(text).toMatch(/^tallyhook_delivery_process_starts_total \d+$/m);
  expect((await rig.app.call('GET', '/readyz')).json).toEqual({
    status: 'ok',
    roles: ['gateway', 'api', 'workers', 'delivery'],
    delivery: 'running',
  });
});
