/** promtool of Prometheus on a real scrape and on config/alerts.yaml. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';

const ALERTS = join(import.meta.dirname, '../../config/alerts.yaml');

const rig = useRig();

/** What promtool prints; an error of its own or a warning ends it with another code than 0. */
function promtool(args: string[], input = ''): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    const child = execFile('promtool', args, (error, out, err) => {
      resolve({ code: error ? Number(error.code) : 0, text: `${out}${err}` });
    });
    child.stdin?.end(input);
  });
}

it('promtool finds no fault in a scrape', async () => {
  const { world, app } = rig;
  await rig.subscribe('/hook');
  await rig.eventOf(await app.give(world.ada, 5), 'operation.settled');
  const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
  const report = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  expect(report.status).toBe(201);
  const scrape = async () => (await app.call('GET', '/metrics')).text;
  await expect.poll(scrape).toMatch(/^tallyhook_report_age_seconds /m);
  expect(await promtool(['check', 'metrics'], await scrape())).toEqual({ code: 0, text: '' });
});

it('promtool accepts the alerts, and they fire and stay silent as config says', async () => {
  expect(await promtool(['check', 'rules', '--lint-fatal', ALERTS])).toMatchObject({ code: 0 });
  const cases = ['alerts.yaml', 'alerts-of-days.yaml'].map((name) =>
    join(import.meta.dirname, name),
  );
  const { code, text } = await promtool(['test', 'rules', ...cases]);
  expect(code, text).toBe(0);
});
