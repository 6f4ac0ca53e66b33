/** `tallyhook watch` and `watches`, run as processes against a served API. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openApi, startServer } from '../api/rig.ts';
import { ADDR_A } from '../api/writes.ts';
import { endOf, startCommand } from '../harness/command.ts';
import { useDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';

const database = await useDatabase();
let server: Awaited<ReturnType<typeof startServer>>;
const folder = useFolder();
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  const api = await openApi(database.db);
  server = await startServer(api.api);
  const key = await api.keyFor('manage', 'read');
  env = { TALLYHOOK_URL: server.url, TALLYHOOK_KEY: key };
});
afterAll(() => server.close());
beforeEach(async () => {
  await database.owner.sql`delete from tallyhook.watches`;
  await database.owner.sql`delete from tallyhook.targets`;
});

const run = (args: string[], input = '') => endOf(startCommand(env, args, { cwd: folder, input }));
const addr = (n: number) => `0x${String(n).padStart(40, '0')}`;

describe('tallyhook watches', () => {
  it('imports a file, names refused lines, and a repeat changes nothing', async () => {
    const rows = Array.from({ length: 1_500 }, (_, n) => addr(n));
    await writeFile(join(folder, 'wallets.csv'), `addr\n${rows.join('\n')}\n0x1\n`);
    const dry = await run(['watches', 'import', 'wallets.csv', '--dry-run']);
    expect(dry).toEqual({
      code: 1,
      out:
        'Nothing was changed. 1501 lines: 1500 added, 0 watched, 1 refused; ' +
        'each target is polled at least every 1500 s\n',
      err: 'line 1502: addr: must be 42 printable characters\n',
    });
    const first = await run(['watches', 'import', 'wallets.csv', '--json']);
    expect(JSON.parse(first.out)).toMatchObject({ added: 1_500, watched: 0, refused: 1 });
    const again = await run(['watches', 'import', 'wallets.csv']);
    expect(again.out).toContain('1501 lines: 0 added, 1500 watched, 1 refused');
  });

  it('reads standard input, lists as CSV what import takes, and removes it', async () => {
    const token = '{"kind":"token","contract_id":"1","token_id":"42"}\n';
    const added = await run(['watches', 'import', '-', '--format', 'ndjson'], token);
    expect(added.code).toBe(0);
    expect((await run(['watch', 'wallet', ADDR_A])).out).toMatch(/^Watching wallet .* as wat_/);
    const { out } = await run(['watches', 'list', '--csv']);
    const lines = ['kind,addr,contract_id,token_id', 'token,,1,42', `wallet,${ADDR_A},,`];
    const csv = lines.map((line) => `${line}\r\n`).join('');
    expect(out).toBe(`\ufeff${csv}`);
    expect((await run(['watches', 'list', '--csv', '--no-bom'])).out).toBe(csv);
    const listed = (await run(['watches', 'list'])).out;
    expect(listed).toMatch(/wat_\S+ {2}token 1 42 {2}by owner of manage read\n/);
    const { data } = JSON.parse((await run(['watches', 'list', '--json'])).out);
    const one = await run(['watches', 'remove', data[0].id]);
    expect(one.out).toBe(`Removed ${data[0].id}\n`);
    const rest = await run(['watches', 'remove', '--file', '-', '--format', 'csv'], out);
    expect(rest.out).toMatch(/^2 lines: 1 removed, 1 not watched, 0 refused/);
    expect((await run(['watches', 'list'])).out).toBe('');
  });

  it.each([
    [['import', 'missing.csv'], 'cannot be read'],
    [['import', 'wallets.txt'], '--format'],
    [['import', '-', '--format', 'csv', '--key', 'thk_wrong'], '401'],
    [['import', '-', '--format', 'csv', '--url', 'http://127.0.0.1:9'], 'no daemon answers'],
    [['remove'], 'either ids of watches or --file'],
  ])('refuses %j with an explanation', async (args, text) => {
    const { code, err } = await run(['watches', ...args], 'addr\n');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(text) });
  });

  it('says why an import stopped', async () => {
    const { code, err } = await run(['watches', 'import', '-', '--format', 'csv'], 'address\n');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('line 1 must name') });
  });
});
