/** A daemon that delivers reports to a bucket: tried again, and its keys are shown nowhere. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeApp } from '../harness/app.ts';
import { BUCKET_KEYS, type Bucket, startBucket } from '../harness/bucket.ts';
import { type DaemonProcess, environmentOf, spawnDaemon } from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const world = await useWorld();
let bucket: Bucket;
let daemon: DaemonProcess;
const app = makeApp(() => daemon.url);
const { accessKeyId, secretAccessKey } = BUCKET_KEYS;

beforeAll(async () => {
  bucket = await startBucket('us-east-1', systemClock);
});
afterAll(async () => {
  await daemon?.kill();
  await bucket?.close();
});

async function start(secret: string): Promise<void> {
  const keys = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret };
  const env = { ...environmentOf(world.database.url, world.sandbox.url), ...keys };
  const to = { name: 'finance', endpoint: bucket.url, prefix: 'reports' };
  daemon = await spawnDaemon(env, {
    http: { port: 0 },
    reports: { delivery: { bucket: to, formats: ['html'] } },
  });
}
const fileOf = async (id: string) =>
  (await app.call('GET', `/api/reports/${id}/files`)).json.data[0];

it('A report waits for the right keys, which no answer and no line of the log holds', async () => {
  await start('hush-wrong');
  const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
  const made = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  const { id } = made.json;
  const failed = await until(async () => {
    const file = await fileOf(id);
    return file?.problem ? file : undefined;
  });
  expect(failed).toMatchObject({
    written_at: null,
    problem: expect.stringContaining('status 403 SignatureDoesNotMatch'),
  });
  const settings = await app.call('GET', '/api/settings');
  const shown = [daemon.output(), settings.text, JSON.stringify(await app.events())].join('\n');
  expect(shown).toContain('a report file was not written');
  for (const secret of ['hush-wrong', accessKeyId, secretAccessKey])
    expect(shown).not.toContain(secret);
  await daemon.stop();

  await start(secretAccessKey);
  const written = await until(async () => {
    const file = await fileOf(id);
    return file?.written_at ? file : undefined;
  });
  const name = `reports/reconciliation_20260101T0000Z_20260102T0000Z_${id}.html`;
  expect(written).toMatchObject({ path: `s3://finance/${name}`, problem: null });
  const page = bucket.objects.get(`${new URL(bucket.url).host}/finance/${name}`);
  expect(page?.content.toString()).toContain('<html');
});
