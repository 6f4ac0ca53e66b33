/** What tells a restored or copied database, and a promoted one, from the recorded one. */
import { cp, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { differenceOf, type Identity, readIdentity } from '../../src/db/checks/identity.ts';
import type { Queryable } from '../../src/db/connect.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';

let database: TestDatabase;
const folder = useFolder();
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const KNOWN: Identity = { system: '1', oid: '2', table: '4', timeline: '00000001', file: '3' };

it.each<[string, Partial<Identity>, ReturnType<typeof differenceOf>]>([
  ['equal in all parts', {}, undefined],
  ['of another cluster', { system: '9' }, 'restored'],
  ['with another oid', { oid: '9' }, 'restored'],
  ['restored in place, with other tables', { table: '9' }, 'restored'],
  ['with copied files', { file: '9' }, 'restored'],
  ['with another timeline', { timeline: '00000002' }, 'failover'],
  ['of another cluster with another timeline', { system: '9', timeline: '00000002' }, 'restored'],
  [
    'of which nothing can be read',
    { system: null, oid: null, table: null, timeline: null, file: null },
    undefined,
  ],
])('A database %s is told so', (_, change, difference) => {
  expect(differenceOf(KNOWN, { ...KNOWN, ...change })).toBe(difference);
});

async function identityOf(db: Queryable, folder?: string): Promise<Identity> {
  return (await readIdentity(db, folder, 'identity')).present;
}

it('The login of the writer reads every part without special rights', async () => {
  const read = await identityOf(database.db);
  expect(read).toEqual({
    system: expect.stringMatching(/^\d{15,}$/),
    oid: expect.stringMatching(/^\d+$/),
    table: expect.stringMatching(/^\d+$/),
    timeline: expect.stringMatching(/^[0-9A-F]{8}$/),
    file: null,
  });
});

it('What a host does not let us read is left out, and the rest is still compared', async () => {
  const { sql } = database.owner;
  await sql`revoke execute on function pg_control_system() from public`;
  const { system, oid, timeline } = await identityOf(database.db);
  expect([system, typeof oid, typeof timeline]).toEqual([null, 'string', 'string']);
});

it('A folder that is moved is the same one, and a folder that is copied is another', async () => {
  const file = async (name: string) => (await identityOf(database.db, join(folder, name))).file;
  await mkdir(join(folder, 'data', 'global'), { recursive: true });
  await writeFile(join(folder, 'data', 'global', 'pg_control'), 'x');
  const original = await file('data');
  await cp(join(folder, 'data'), join(folder, 'copy'), { recursive: true });
  await rename(join(folder, 'data'), join(folder, 'moved'));
  expect(await file('moved')).toBe(original);
  expect(await file('copy')).not.toBe(original);
});

it('A dump that is restored in place has other tables', async () => {
  const before = await identityOf(database.db);
  const { sql } = database.owner;
  await sql`create table tallyhook.restored (like tallyhook.installation)`;
  await sql`grant select on tallyhook.restored to tallyhook_writer`;
  await sql`alter table tallyhook.installation rename to former`;
  await sql`alter table tallyhook.restored rename to installation`;
  expect(differenceOf(before, await identityOf(database.db))).toBe('restored');
});
