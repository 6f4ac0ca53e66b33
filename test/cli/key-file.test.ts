/** The key of a command that calls a daemon, in a file. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openApi, startServer } from '../api/rig.ts';
import { runCommand } from '../harness/command.ts';
import { useDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';

const database = await useDatabase();
const folder = useFolder();
const file = join(folder, 'key');
let server: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  const api = await openApi(database.db);
  server = await startServer(api.api);
  writeFileSync(file, `${await api.keyFor('admin')}\n`);
});
afterAll(() => server.close());

const list = (env: Record<string, string>, ...args: string[]) =>
  runCommand({ TALLYHOOK_URL: server.url, ...env }, 'watches', 'list', ...args);

it('A command calls its daemon with the key of a file', async () => {
  expect(await list({ TALLYHOOK_KEY_FILE: file })).toMatchObject({ code: 0 });
  expect(await list({}, '--key-file', file)).toMatchObject({ code: 0 });
});

it('Commands of keys ask the daemon with the key of a file, and not the database', async () => {
  const nowhere = { DATA_DIR: join(folder, 'none'), TALLYHOOK_URL: server.url };
  const keys = (env: Record<string, string>, ...args: string[]) =>
    runCommand({ ...nowhere, ...env }, 'keys', ...args, '--json');
  const made = await keys({ TALLYHOOK_KEY_FILE: file }, 'create', '--owner', 'shop');
  expect(made).toMatchObject({ code: 0 });
  const { id } = JSON.parse(made.text);
  const listed = await keys({}, 'list', '--key-file', file);
  expect(listed).toMatchObject({ code: 0, text: expect.stringContaining(id) });
  expect(await keys({ TALLYHOOK_KEY_FILE: file }, 'revoke', id)).toMatchObject({ code: 0 });
  const without = await keys({ TALLYHOOK_KEY_FILE: '' }, 'list');
  expect(without).toMatchObject({ code: 1, text: expect.stringContaining('there is no database') });
});

it('A command with a key and a file of one, or with a file that is missing, is refused', async () => {
  const both = await list({ TALLYHOOK_KEY_FILE: file, TALLYHOOK_KEY: 'thk_hush' });
  expect(both.code).toBe(1);
  expect(both.text).toMatch(/'TALLYHOOK_KEY_FILE' cannot be used with .*'TALLYHOOK_KEY'/);
  expect(both.text).not.toContain('hush');
  const missing = await list({ TALLYHOOK_KEY_FILE: join(folder, 'none') });
  expect(missing).toEqual({
    code: 1,
    text: expect.stringMatching(/^TALLYHOOK_KEY_FILE: \S+ cannot be read \(ENOENT\)/),
  });
});
