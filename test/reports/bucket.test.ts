/** Reports delivered to an S3-compatible bucket, which checks every signature and content. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { objectUrl } from '../../src/reports/files/bucket.ts';
import { renderHtml } from '../../src/reports/render/html.ts';
import { BUCKET_KEYS, type Bucket, startBucket } from '../harness/bucket.ts';
import { makeWorld, type World } from './world.ts';

const REGION = 'eu-central-1';
let world: World;
let bucket: Bucket;
beforeEach(async () => {
  bucket = await startBucket(REGION, systemClock);
});
afterEach(async () => {
  await world.drop();
  await bucket.close();
});

async function open(change: object = {}) {
  const to = {
    name: 'finance',
    endpoint: bucket.url,
    region: REGION,
    prefix: 'tallyhook/reports',
    pathStyle: true,
    keys: BUCKET_KEYS,
    ...change,
  };
  world = await makeWorld({ settings: { files: { bucket: to, formats: ['html', 'csv-zip'] } } });
  return world.report();
}
const write = () => world.reports.writeFiles(world.clock.now());
const nameOf = (id: string, extension: string) =>
  `reconciliation_20260101T0000Z_20260102T0000Z_${id}.${extension}`;
const keyOf = (id: string, extension: string) => `tallyhook/reports/${nameOf(id, extension)}`;
const hostOf = () => new URL(bucket.url).host;

it('A report is put once in each format, whole, under its name', async () => {
  const { id } = await open();
  expect(bucket.objects.size).toBe(0);
  const { written, failed } = await write();
  const uris = ['html', 'zip'].map((extension) => `s3://finance/${keyOf(id, extension)}`);
  expect([written.toSorted(), failed]).toEqual([uris, []]);
  const page = bucket.objects.get(`${hostOf()}/finance/${keyOf(id, 'html')}`);
  expect(page?.content.toString()).toBe(renderHtml(await world.reports.getReport(id)));
  expect(page?.type).toBe('text/html; charset=utf-8');
  expect(bucket.objects.size).toBe(2);
  expect((await write()).written).toEqual([]);
  const [zip, html] = await world.reports.filesOf(id);
  expect([html, zip]).toMatchObject(uris.map((path) => ({ path, problem: null })));
  const rows = await world.owner.sql<{ body: string }[]>`
    select tallyhook.event_body(events) as body from tallyhook.events`;
  expect(JSON.parse(rows[0]?.body ?? '').data.files).toEqual(uris);
});

it.each([
  [true, 'https://s3.example/a', 'b/c', 'https://s3.example/a/finance/b/c/x.html'],
  [true, 'http://10.0.0.5:9000/', '', 'http://10.0.0.5:9000/finance/x.html'],
  [false, 'https://s3.example', 'b', 'https://finance.s3.example/b/x.html'],
])(
  'With path style %s at %s below "%s" an object is %s',
  async (pathStyle, endpoint, prefix, url) => {
    await open();
    const to = { name: 'finance', endpoint, region: REGION, prefix, pathStyle };
    expect(objectUrl(to, 'x.html')).toBe(url);
  },
);

it.each([
  [{ keys: { ...BUCKET_KEYS, secretAccessKey: 'wrong' } }, 'status 403 SignatureDoesNotMatch'],
  [{ keys: { ...BUCKET_KEYS, accessKeyId: 'AKIDOTHER' } }, 'status 403 InvalidAccessKeyId'],
  [{ region: 'us-east-1' }, 'status 403 AuthorizationHeaderMalformed'],
  [{ endpoint: 'http://127.0.0.1:9' }, 'ECONNREFUSED'],
])('With %j the file stays due, with a problem that holds no key', async (change, problem) => {
  const { id } = await open(change);
  const { written, failed } = await write();
  expect(written).toEqual([]);
  expect(failed.map((one) => one.problem)).toEqual([
    expect.stringContaining(`cannot be written: ${problem}`),
    expect.stringContaining(`cannot be written: ${problem}`),
  ]);
  const shown = JSON.stringify([failed, await world.reports.filesOf(id)]);
  for (const secret of [...Object.values(BUCKET_KEYS), 'AKIDOTHER', 'wrong'])
    expect(shown).not.toContain(secret);
  expect(bucket.objects.size).toBe(0);
});

it('A file is put again after a 503, a cut connection and a wrong checksum', async () => {
  const { id } = await open();
  bucket.faults.push('503', 'cut');
  const first = await write();
  expect(first.failed.map(({ problem }) => problem)).toEqual([
    expect.stringContaining('status 503 SlowDown'),
    expect.stringMatching(/cannot be written: (UND_ERR_SOCKET|ECONNRESET|EPIPE)$/),
  ]);
  expect((await write()).failed).toEqual([]);
  world.clock.advance(10_000);
  bucket.faults.push('other_checksum');
  const second = await write();
  expect(second.failed).toMatchObject([{ problem: expect.stringContaining('was changed') }]);
  expect(second.written).toHaveLength(1);
  world.clock.advance(20_000);
  expect((await write()).written).toHaveLength(1);
  expect(await world.reports.filesOf(id)).toMatchObject([{ problem: null }, { problem: null }]);
  expect(bucket.objects.size).toBe(2);
});
