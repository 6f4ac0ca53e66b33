/** Commands that speak to a running daemon, run as people run them, against a served API. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makePartitions } from '../../src/db/partitions.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { openApi, type TestApi } from '../api/harness.ts';
import { ADDR_B, accepted, aWrite } from '../api/writes.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';

const HUGE = 9_007_199_254_740_993_000_000_001n;
const COUNT = 503;
let database: TestDatabase;
let api: TestApi;
let server: Server;
let folder: string;
let environment: NodeJS.ProcessEnv;

beforeAll(async () => {
  database = await createDatabase();
  // As a daemon does at its start, and the doctor too: before the first event.
  await makePartitions(database.db, systemClock.now());
  api = await openApi(database.db);
  for (let n = 0; n < COUNT; n++) {
    const reference = ['=1+1', '+49 30', '-5', '@home', 'a "quoted", one\nand more', 'plain'][n];
    const made = await api.operations.record(
      aWrite({ reference: reference ?? null, fields: { amount: HUGE } }),
    );
    if (n === 5 && 'id' in made)
      await api.operations.conclude(accepted(made.id, HUGE, api.deps.clock.now()));
  }
  const listener = getRequestListener(api.api.fetch, { overrideGlobalObjects: false });
  server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  folder = await mkdtemp(join(tmpdir(), 'tallyhook-export-'));
  environment = {
    PATH: process.env.PATH,
    TALLYHOOK_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    TALLYHOOK_KEY: await api.keyFor('admin'),
    DATABASE_URL: database.url,
    DATA_DIR: folder,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  };
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

const COMMAND = join(import.meta.dirname, '../../src/cli/tallyhook.ts');
function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [COMMAND, ...args], { cwd: folder, env: environment });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text;
    });
    child.once('close', (code) => resolve({ code, out, err }));
  });
}

describe('tallyhook export operations', () => {
  test('Writes every operation of every page once, in columns that finance knows', async () => {
    const { code, err } = await run('export', 'operations', '--out', 'all.csv');
    expect({ code, err }).toEqual({ code: 0, err: `${COUNT} operations\n` });
    const text = await readFile(join(folder, 'all.csv'), 'utf8');
    const [head = '', ...rows] = text.trimEnd().split('\r\n');
    const columns = await database.db.sql<{ name: string }[]>`
      select attname as name from pg_attribute
      where attrelid = 'finance_v1.operations'::regclass and attnum > 0 order by attnum`;
    expect(head.split(',').slice(0, columns.length)).toEqual(columns.map(({ name }) => name));
    expect(rows.length).toBe(COUNT);
    expect(new Set(rows.map((row) => row.split(',')[0])).size).toBe(COUNT);
    expect(await readdir(folder)).toEqual(['all.csv']);
  });

  test('Writes amounts digit by digit, and nothing that a spreadsheet would run', async () => {
    const { out } = await run('export', 'operations');
    expect(out).toContain(`,${HUGE},1,`);
    for (const cell of ["'=1+1", "'+49 30", "'@home", '-5', '"a ""quoted"", one\nand more"'])
      expect(out).toContain(`,${cell},`);
  });

  test('Chooses by state and time, as lines or as one document', async () => {
    const lines = await run('export', 'operations', '--format', 'ndjson', '--state', 'accepted');
    expect(JSON.parse(lines.out)).toMatchObject({ tx_log_no: HUGE.toString(), to_addr: ADDR_B });
    const until = ['--until', '2020-01-01T00:00:00Z'];
    const none = await run('export', 'operations', '--format', 'json', ...until);
    expect(JSON.parse(none.out)).toEqual({ data: [] });
    const all = await run('export', 'operations', '--format', 'json');
    expect(JSON.parse(all.out).data.length).toBe(COUNT);
  });

  test.each([
    [['--state', 'lost'], 'state'],
    [['--since', 'yesterday'], 'since'],
    [['--format', 'xml'], 'csv'],
    [['--key', 'thk_wrong'], '401'],
    [['--url', 'http://127.0.0.1:9'], 'no daemon answers'],
    [['--out', 'nowhere/file.csv'], 'cannot be written'],
  ])('With %j ends with one line that says why, and leaves no file', async (args, why) => {
    const { code, err } = await run('export', 'operations', ...args);
    expect(code).toBe(1);
    expect(err).toContain(why);
    expect(err).not.toMatch(/\n\s+at /);
    expect(await readdir(folder)).toEqual(['all.csv']);
  });
});

describe('tallyhook freeze and unfreeze', () => {
  test('Stop and release writes with a reason, and say so', async () => {
    const frozen = await run('freeze', '--reason', 'the key leaked');
    expect(frozen.out).toContain('owner of admin: the key leaked');
    const { body } = await api.ask('GET', '/api/status');
    expect(body.freeze).toMatchObject({ reason: 'the key leaked', released_at: null });
    expect((await api.ask('GET', '/metrics')).text).toContain('tallyhook_writes_frozen 1');
    await expect(api.operations.record(aWrite())).rejects.toMatchObject({ code: 'frozen' });
    const doctor = await run('doctor', '--json');
    const { checks } = JSON.parse(doctor.out);
    expect(checks.find(({ check }: { check: string }) => check === 'writes')).toMatchObject({
      ...{ ok: false, found: expect.stringContaining('the key leaked; npx tallyhook unfreeze') },
    });
    const released = await run('unfreeze', '--reason', 'replaced', '--json');
    expect(JSON.parse(released.out)).toMatchObject({ release_reason: 'replaced' });
    expect((await api.ask('GET', '/metrics')).text).toContain('tallyhook_writes_frozen 0');
    const again = await run('unfreeze', '--reason', 'once more');
    expect({ code: again.code, said: again.err }).toMatchObject({
      code: 1,
      said: expect.stringContaining('conflict'),
    });
  });

  test.each([['freeze'], ['unfreeze'], ['export', 'operations']])(
    'Show an example: %s %s',
    async (...args) => {
      const { code, out } = await run(...args, '--help');
      expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('Example:') });
    },
  );
});

test('tallyhook keys create takes limits, and says what they look like', async () => {
  const limits = { kinds: ['give'], amount_per_day: '1000' };
  const create = (text: string) =>
    run('keys', 'create', '--owner', 'shop', '--json', '--limits', text);
  const made = await create(JSON.stringify(limits));
  expect(JSON.parse(made.out)).toMatchObject({ owner: 'shop', limits });
  const refused = await create('{"kinds":["gift"]}');
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('kinds.0') });
});
