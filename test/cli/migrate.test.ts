/** `tallyhook migrate`, and programs that are older or newer than the database. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { migrate, readMigrations } from '../../src/db/migrate.ts';
import { useEmptyDatabases } from '../db/empty-database.ts';
import { endOf, startCommand } from '../harness/command.ts';
import { environmentOf } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';

const RELEASE = join(import.meta.dirname, '../db/releases/0.2.0/drizzle');

const databases = useEmptyDatabases();
const folder = useFolder();
let tags: string[];
/** What was added since the last release, and the definitions. */
let last: string[];

beforeAll(async () => {
  tags = (await readMigrations()).map(({ tag }) => tag);
  const journal = JSON.parse(await readFile(join(RELEASE, 'meta/_journal.json'), 'utf8'));
  last = tags.slice(journal.entries.length);
});

function run(url: string, ...args: string[]) {
  const env = environmentOf(url, 'http://127.0.0.1:9');
  const unused = { DATA_DIR: join(folder, 'never-made'), PORT: '0' };
  const program = args.length > 0 ? 'src/cli/tallyhook.ts' : 'src/main.ts';
  return endOf(startCommand({ ...env, ...unused }, args, { program }));
}

/** A database that the last release made. */
async function olderDatabase(): Promise<string> {
  const url = await databases.make();
  await migrate(url, RELEASE);
  return url;
}

/**
 * A database in which the migration of a later program is applied.
 * @param compatibleFrom the number of the newest migration of programs that work with it
 */
async function newerDatabase(compatibleFrom = 99): Promise<string> {
  const url = await databases.make();
  await migrate(url);
  const db = connect({ url, max: 1 });
  await db.sql`insert into tallyhook.applied_migrations (idx, tag, hash, compatible_from)
    values (99, '0099_later', 'h', ${compatibleFrom})`;
  await db.end();
  return url;
}

async function readOnly(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await databases.run(`alter database ${name} set default_transaction_read_only = on`);
}

describe('tallyhook migrate', () => {
  it('with --dry-run names the files that would run, and writes nothing', async () => {
    const url = await databases.make();
    await readOnly(url);
    const { code, out } = await run(url, 'migrate', '--dry-run');
    expect([code, out]).toEqual([
      0,
      tags.map((tag) => `Would apply drizzle/${tag}.sql\n`).join(''),
    ]);
    const { out: json } = await run(await olderDatabase(), 'migrate', '--dry-run', '--json');
    expect(JSON.parse(json)).toEqual({ missing: last });
  });

  it('applies what is missing, and a second time nothing', async () => {
    const url = await olderDatabase();
    expect(await run(url, 'migrate')).toMatchObject({
      code: 0,
      out: last.map((tag) => `Applied drizzle/${tag}.sql\n`).join(''),
    });
    expect(await run(url, 'migrate')).toMatchObject({
      code: 0,
      out: 'The database is up to date.\n',
    });
  });
});

describe('A program that is older than the database', () => {
  it.each([
    ['start', []],
    ['migrate', ['migrate']],
    ['migrate --dry-run', ['migrate', '--dry-run']],
    ['keys list', ['keys', 'list']],
    ['rotate-master-key', ['rotate-master-key', '--dry-run']],
  ])('refuses it at %s with one line that says what to do', async (_, args) => {
    const url = await newerDatabase();
    await readOnly(url);
    const { code, out, err } = await run(url, ...args);
    expect([code, `${out}${err}`]).toEqual([
      1,
      'the database is newer than this program: 0099_later does not work with it; ' +
        'run a newer program\n',
    ]);
  });
});

it('A program works with a newer database that is compatible with it, and migrates nothing', async () => {
  const url = await newerDatabase(2);
  expect(await run(url, 'migrate')).toMatchObject({
    code: 0,
    out: 'The database is up to date.\n',
  });
  const { code, err } = await run(url, 'keys', 'list');
  expect(code, err).toBe(0);
});

describe('A program that is newer than the database', () => {
  it.each([
    ['keys list', ['keys', 'list']],
    ['rotate-master-key', ['rotate-master-key', '--dry-run']],
    ['doctor', ['doctor']],
  ])('says at %s what migrate would do, and changes nothing', async (_, args) => {
    const url = await olderDatabase();
    await readOnly(url);
    const { code, out, err } = await run(url, ...args);
    const lacks = `the database is older than this program: it lacks ${last.join(', ')}`;
    const line = `${lacks}; run npx tallyhook migrate\n`;
    expect([code, `${out}${err}`]).toEqual([1, expect.stringContaining(line)]);
    expect(`${out}${err}`.trim().split('\n')).toHaveLength(1);
  });
});
