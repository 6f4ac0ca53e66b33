/** Reports delivered to a folder: whole files, tried again until they are written. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { renderHtml } from '../../src/reports/render/html.ts';
import { DAY, makeWorld, START, type World } from './world.ts';

let world: World;
let parent: string;
let folder: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'tallyhook-files-'));
  folder = join(parent, 'finance');
  await mkdir(folder);
  world = await makeWorld({ settings: { files: { folder, formats: ['html', 'csv-zip'] } } });
});
afterEach(async () => {
  await world.drop();
  await rm(parent, { recursive: true });
});

const write = () => world.reports.writeFiles(world.clock.now());
const nameOf = (id: string, extension: string) =>
  `reconciliation_20260101T0000Z_20260102T0000Z_${id}.${extension}`;

it('A report is delivered once in each format, under a name that begins with its period', async () => {
  const { id } = await world.report();
  expect(await readdir(folder)).toEqual([]);
  const { written, failed } = await write();
  const names = [nameOf(id, 'html'), nameOf(id, 'zip')];
  expect([written.toSorted(), failed]).toEqual([names.map((name) => join(folder, name)), []]);
  expect((await readdir(folder)).toSorted()).toEqual(names);
  const page = await readFile(join(folder, nameOf(id, 'html')), 'utf8');
  expect(page).toBe(renderHtml(await world.reports.getReport(id)));
  // What a person moves away does not come back.
  await rm(join(folder, nameOf(id, 'html')));
  expect((await write()).written).toEqual([]);
});

it('The event says where the files go', async () => {
  const { id } = await world.report();
  const rows = await world.owner.sql<{ body: string }[]>`
    select tallyhook.event_body(events) as body from tallyhook.events`;
  expect(JSON.parse(rows[0]?.body ?? '').data.files).toEqual([
    join(folder, nameOf(id, 'html')),
    join(folder, nameOf(id, 'zip')),
  ]);
});

it('A missing folder is not made, its files are due again, later each time', async () => {
  const { id } = await world.report();
  await rm(folder, { recursive: true });
  const first = await write();
  expect(first.written).toEqual([]);
  expect(first.failed.map(({ problem }) => problem)).toEqual([
    expect.stringContaining('cannot be written: ENOENT'),
    expect.stringContaining('cannot be written: ENOENT'),
  ]);
  expect(await world.reports.filesOf(id)).toMatchObject([
    { format: 'csv-zip', writtenAt: null, problem: expect.stringContaining('ENOENT') },
    { format: 'html', writtenAt: null, problem: expect.stringContaining('ENOENT') },
  ]);
  expect((await write()).failed).toEqual([]);
  world.clock.advance(10_000);
  expect((await write()).failed).toHaveLength(2);
  world.clock.advance(10_000);
  expect((await write()).failed).toEqual([]);
  await mkdir(folder);
  world.clock.advance(10_000);
  expect((await write()).written).toHaveLength(2);
  expect(await world.reports.filesOf(id)).toMatchObject([{ problem: null }, { problem: null }]);
});

it('A file that cannot get its name leaves no part of itself', async () => {
  const { id } = await world.report();
  await mkdir(join(folder, nameOf(id, 'html')));
  await writeFile(join(folder, `${nameOf(id, 'zip')}.part`), 'of a daemon that was killed');
  expect((await write()).failed).toHaveLength(1);
  expect((await readdir(folder)).toSorted()).toEqual([nameOf(id, 'html'), nameOf(id, 'zip')]);
});

it('Without a folder nothing is due', async () => {
  const other = await makeWorld();
  try {
    const { id } = await other.report();
    expect(await other.reports.filesOf(id)).toEqual([]);
    expect(await other.reports.writeFiles(START + DAY)).toEqual({ written: [], failed: [] });
  } finally {
    await other.drop();
  }
});
