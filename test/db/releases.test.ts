/**
 * Starts on the database of each earlier release (releases/<version>, made by releases/make.ts),
 * and on one of the present program that went the same way.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkGuards } from '../../src/db/checks/guards.ts';
import { migrate, missingMigrations, readMigrations } from '../../src/db/migrate.ts';
import { type App, makeApp } from '../harness/app.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { over, useEmptyDatabases } from './empty-database.ts';
import { archive, keptRow, readFinance, unarchive } from './releases/archive.ts';
import { KEPT_AMOUNT, KEPT_KEY, makeTraffic } from './releases/traffic.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDERS = globSync('releases/*/', { cwd: import.meta.dirname }).sort((a, b) =>
  a.localeCompare(b, 'en', { numeric: true }),
);
const PRESENT = 'the present program';
/** Nothing of an old release has expired. */
const KEPT = { events: 36_500, observations: 36_500, deliveries: 36_500, attempts: 36_500 };

interface Release {
  /** The migrations that made it. */
  drizzle: string;
  rows: string[];
  finance: Record<string, string[]>;
}

const databases = useEmptyDatabases();
const world = await useWorld();

async function present(): Promise<Release> {
  const url = await databases.make();
  await migrate(url);
  await makeTraffic(url);
  return over(url, async (db) => {
    const [rows, finance] = [await archive(db), await readFinance(db)];
    return { drizzle: join(ROOT, 'drizzle'), rows, finance };
  });
}

async function committed(folder: string): Promise<Release> {
  const file = (name: string) => readFile(join(import.meta.dirname, folder, name), 'utf8');
  return {
    drizzle: join(import.meta.dirname, folder, 'drizzle'),
    rows: (await file('rows.ndjson')).trimEnd().split('\n'),
    finance: JSON.parse(await file('finance.json')),
  };
}

it('Every release has its database here', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const folder = `releases/${version}`;
  expect(FOLDERS, 'node test/db/releases/make.ts at a release').toContain(folder);
});

it('Definitions that changed since the last release come with a migration', async () => {
  const last = FOLDERS.at(-1) ?? '';
  const then = await readMigrations(join(import.meta.dirname, last, 'drizzle'));
  const now = await readMigrations();
  expect(now.slice(0, then.length - 1)).toEqual(then.slice(0, -1));
  if (now.length === then.length) expect(now.at(-1)).toEqual(then.at(-1));
});

it('Programs of the last release work with every migration since', async () => {
  const then = await readMigrations(join(import.meta.dirname, FOLDERS.at(-1) ?? '', 'drizzle'));
  const newest = Math.max(...then.map(({ idx }) => idx));
  const others = (await readMigrations()).filter(({ compatibleFrom: from }) => from > newest);
  const why =
    'without a first line `-- compatible from` a migration of that release: CONTRIBUTING.md';
  expect(
    others.map(({ tag }) => tag),
    why,
  ).toEqual([]);
});

describe.each([PRESENT, ...FOLDERS.map((folder) => basename(folder))])(
  'The database of %s',
  (name) => {
    let release: Release;
    let url: string;
    let daemon: DaemonProcess;
    let app: App;

    beforeAll(async () => {
      release = await (name === PRESENT ? present() : committed(join('releases', name)));
      url = await databases.make();
      await migrate(url, release.drizzle);
      await over(url, (db) => unarchive(db, release.rows));
    });
    afterAll(() => daemon?.kill());

    it('is migrated, keeps its guards, and shows finance the same', async () => {
      const missing = await missingMigrations(url);
      expect(await migrate(url)).toEqual(missing);
      await over(url, async (db) => {
        await checkGuards(db);
        const now = await readFinance(db);
        for (const [view, rows] of Object.entries(release.finance)) {
          expect(rows.length, view).toBeGreaterThan(0);
          // Columns may have been added.
          expect(now[view]?.length, view).toBe(rows.length);
          const found = (now[view] ?? []).map((line) => JSON.parse(line));
          const kept = rows.map((line) => expect.objectContaining(keptRow(view, line)));
          expect(found, view).toEqual(kept);
        }
      });
    });

    it('is started on: its events, keys and writes go on', async () => {
      const environment = environmentOf(url, world.sandbox.url);
      daemon = await spawnDaemon(environment, { ...QUICK, database: { retention_days: KEPT } });
      app = makeApp(() => daemon.url);
      expect((await app.call('GET', '/readyz')).status).toBe(200);
      const rows = release.rows.map((line) => JSON.parse(line));
      const ids = rows.flatMap(({ table, row }) => (table === 'events' ? [`evt_${row.id}`] : []));
      const events = new Set((await app.events()).map(({ id }) => id));
      expect(ids.length).toBeGreaterThan(10);
      expect(ids.filter((id) => !events.has(id))).toEqual([]);
      const repeated = await app.give(world.ada, KEPT_AMOUNT, { 'idempotency-key': KEPT_KEY });
      expect(repeated.status, repeated.text).toBe(200);
      expect(repeated.headers['idempotency-replayed']).toBe('true');
      const fresh = await app.give(world.ada, 23, { 'idempotency-key': 'fresh' });
      expect(fresh.status, fresh.text).toBe(200);
      const id = String(fresh.headers['tallyhook-operation']);
      await app.until(
        ({ type, data }) => type === 'operation.accepted' && data.operation_id === id,
      );
    });
  },
);
