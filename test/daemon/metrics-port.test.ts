/** `/metrics` on a port of its own. */
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import { type DaemonProcess, environmentOf, QUICK, startDaemon } from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const world = await useWorld();

const daemons: DaemonProcess[] = [];
afterEach(async () => {
  for (const { child, kill } of daemons.splice(0)) if (child.exitCode === null) await kill();
});

async function started(settings: object = {}) {
  const http = { ...QUICK.http, metrics_port: 0 };
  const daemon = await startDaemon(world, { http, ...settings });
  daemons.push(daemon);
  // The banner goes on after the line that says ready.
  const found = async () => /^ {2}metrics {3}(\S+)$/m.exec(daemon.output())?.[1];
  const metrics = (await until(found)) ?? '';
  return { daemon, metrics };
}

it('With a port of its own the metrics are served there and nowhere else, and nothing else is', async () => {
  const { daemon, metrics } = await started();
  const own = await fetch(metrics);
  expect(own.headers.get('content-type')).toMatch(/^text\/plain; version=/);
  expect([own.status, await own.text()]).toEqual([
    200,
    expect.stringMatching(/^tallyhook_role\{role="gateway"\} 1$/m),
  ]);
  const statusOf = async (path: string, base = daemon.url) =>
    (await fetch(new URL(path, base))).status;
  expect([await statusOf('/metrics'), await statusOf('/readyz')]).toEqual([404, 200]);
  for (const path of ['/', '/readyz', '/api/status', '/v1/accounts', '/docs'])
    expect(await statusOf(path, metrics), path).toBe(404);
  const document = await (await fetch(new URL('/api/openapi.json', daemon.url))).text();
  expect(document).toContain('"/readyz"');
  expect(document).not.toContain('"/metrics"');
});

it('The port of the metrics is scraped until the daemon has stopped, and then does not keep it', async () => {
  const { daemon, metrics } = await started({ daemon: { ...QUICK.daemon, unready_ms: 10_000 } });
  const { hostname, port } = new URL(metrics);
  const idle = connect(Number(port), hostname);
  daemon.child.kill('SIGTERM');
  const isUnready = async () => {
    const answer = await fetch(new URL('/readyz', daemon.url)).catch(() => undefined);
    return answer?.status === 503 || undefined;
  };
  expect(await until(isUnready)).toBe(true);
  expect((await fetch(metrics)).status).toBe(200);
  expect(await daemon.stop()).toBe(0);
  idle.destroy();
});

it('A start whose port of the metrics is in use names its setting', async () => {
  const { metrics } = await started();
  const env = {
    ...environmentOf(world.database.url, world.sandbox.url),
    PORT: '0',
    TALLYHOOK_METRICS_PORT: new URL(metrics).port,
    LOG_LEVEL: 'fatal',
  };
  const { code, text } = await runCommand(env, 'start');
  expect(code).toBe(1);
  expect(text).toMatch(/is in use; set TALLYHOOK_METRICS_PORT to another or to 0/);
});
