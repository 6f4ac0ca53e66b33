/** The command line, run as a process against a served API. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProgram } from '../../src/cli/commands.ts';
import { makePartitions } from '../../src/db/partitions.ts';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { openApi, startServer, type TestApi } from '../api/rig.ts';
import { ADDR_A, ADDR_B, accepted, aWrite } from '../api/writes.ts';
import { endOf, startCommand } from '../harness/command.ts';
import { useDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { until } from '../harness/until.ts';
import { openLedgerOfInserted } from '../ledger/fixture.ts';

const HUGE = 9_007_199_254_740_993_000_000_001n;
const COUNT = 503;
const database = await useDatabase();
let api: TestApi;
let server: Awaited<ReturnType<typeof startServer>>;
const folder = useFolder();
let environment: NodeJS.ProcessEnv;

beforeAll(async () => {
  // As a start of a daemon does before the first event.
  await makePartitions(database.db, systemClock.now());
  api = await openApi(database.db);
  const references = ['=1+1', '+49 30', '-5', '@home', 'a "quoted", one\nand more', 'plain'];
  const [first] = await Promise.all(
    Array.from({ length: COUNT }, (_, n) =>
      api.operations.record(aWrite({ reference: references[n] ?? null, fields: { amount: HUGE } })),
    ),
  );
  if (first && 'id' in first)
    await api.operations.conclude(accepted(first.id, HUGE, api.deps.clock.now()));
  server = await startServer(api.api);
  environment = {
    TALLYHOOK_URL: server.url,
    TALLYHOOK_KEY: await api.keyFor('admin'),
    DATABASE_URL: database.url,
    DATA_DIR: folder,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  };
});
afterAll(() => server.close());

const runWith = (change: NodeJS.ProcessEnv, ...args: string[]) =>
  endOf(startCommand({ ...environment, ...change }, args, { cwd: folder }));
const run = (...args: string[]) => runWith({}, ...args);

describe('tallyhook export operations', () => {
  it('writes every operation once, in the columns of finance_v1.operations', async () => {
    const { code, err } = await run('export', 'operations', '--no-bom', '--out', 'all.csv');
    const total = HUGE * BigInt(COUNT);
    const counted = `${COUNT} operations, amounts ${total} in total\n`;
    expect({ code, err }).toEqual({ code: 0, err: counted });
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

  it('writes exact amounts, and no cell that a spreadsheet would run as a formula', async () => {
    const { out } = await run('export', 'operations');
    expect(out.startsWith('\ufeffoperation_id,')).toBe(true);
    expect(out).toContain(`,${HUGE},1,`);
    for (const cell of ["'=1+1", "'+49 30", "'@home", "'-5", '"a ""quoted"", one\nand more"'])
      expect(out).toContain(`,${cell},`);
  });

  it('filters by state and time, and writes NDJSON or one JSON document', async () => {
    const lines = await run('export', 'operations', '--format', 'ndjson', '--state', 'accepted');
    expect(JSON.parse(lines.out)).toMatchObject({ tx_log_no: HUGE.toString(), to_addr: ADDR_B });
    const until = ['--until', '2020-01-01T00:00:00Z'];
    const none = await run('export', 'operations', '--format', 'json', ...until);
    expect(JSON.parse(none.out)).toEqual({ data: [] });
    const all = await run('export', 'operations', '--format', 'json');
    expect(JSON.parse(all.out).data.length).toBe(COUNT);
  });

  it.each([
    [['--state', 'lost'], 'state'],
    [['--since', 'yesterday'], 'since'],
    [['--format', 'xml'], 'csv'],
    [['--key', 'thk_wrong'], '401'],
    [['--url', 'http://127.0.0.1:9'], 'no daemon answers'],
    [['--out', 'nowhere/file.csv'], 'cannot be written'],
  ])(
    'fails for %j with one line that gives the reason, and leaves no file',
    async (args, reason) => {
      const { code, err } = await run('export', 'operations', ...args);
      expect(code).toBe(1);
      expect(err).toContain(reason);
      expect(err).not.toMatch(/\n\s+at /);
      expect(await readdir(folder)).toEqual(['all.csv']);
    },
  );
});

describe('tallyhook export lines', () => {
  it('writes the transactions behind the totals of a report, with payer and payee', async () => {
    const { clock } = api.deps;
    const ledger = await openLedgerOfInserted({
      db: database.db,
      clock: manualClock(clock.now()),
      daemonId: 'dmn_lines',
    });
    while ((await ledger.runOnce(clock.now())).posted > 0);
    const [from, to] = [isoText(clock.now() - 3_600_000), isoText(clock.now() + 3_600_000)];
    const body = { kind: 'reconciliation', from, to };
    const { id } = (await api.call('POST', '/api/reports', { body })).body;
    const { code, out, err } = await run('export', 'lines', id, '--kind', 'transfer');
    expect({ code, err }).toEqual({ code: 0, err: `1 lines, amounts ${HUGE} in total\n` });
    const [head = '', row = ''] = out.split('\r\n');
    expect(head).toMatch(/^\ufeffeffective_at,.*,payer,payee,reference/);
    expect(row.toLowerCase()).toContain(`,transfer,,1,${HUGE},1,op_`);
    const [payer, payee] = [ADDR_A, ADDR_B].map((addr) => `wallet:${addr.toLowerCase()}`);
    expect(row.toLowerCase()).toContain(`,${payer},${payee} fees,`);
    const none = await run('export', 'lines', id, '--account', 'operator:7', '--format', 'json');
    expect(JSON.parse(none.out)).toEqual({ data: [] });
  });
});

describe('tallyhook freeze and unfreeze', () => {
  it('stop and allow all writes, with a reason that the API and the doctor show', async () => {
    const frozen = await run('freeze', '--reason', 'the key leaked');
    expect(frozen.out).toContain('owner of admin: the key leaked');
    const { body } = await api.call('GET', '/api/status');
    expect(body.freeze).toMatchObject({ reason: 'the key leaked', released_at: null });
    expect((await api.call('GET', '/metrics')).text).toContain('tallyhook_writes_frozen 1');
    await expect(api.operations.record(aWrite())).rejects.toMatchObject({ code: 'frozen' });
    const doctor = await run('doctor', '--json');
    const { checks } = JSON.parse(doctor.out);
    expect(checks.find(({ check }: { check: string }) => check === 'writes')).toMatchObject({
      ok: false,
      found: expect.stringContaining('the key leaked; npx tallyhook unfreeze'),
    });
    const released = await run('unfreeze', '--reason', 'replaced', '--json');
    expect(JSON.parse(released.out)).toMatchObject({ release_reason: 'replaced' });
    // A scrape is answered from the last one within a second.
    const isZero = async () =>
      (await api.call('GET', '/metrics')).text.includes('tallyhook_writes_frozen 0') || undefined;
    expect(await until(isZero)).toBe(true);
    const again = await run('unfreeze', '--reason', 'once more');
    expect(again).toMatchObject({
      code: 1,
      err: expect.stringContaining('conflict'),
    });
  });
});

describe('tallyhook quarantine', () => {
  it('lists what is quarantined and releases it by its id, with a reason', async () => {
    expect((await run('quarantine')).out).toBe('Nothing is quarantined\n');
    const recorded = await api.operations.record(aWrite());
    const id = 'id' in recorded ? recorded.id : '';
    const answer = accepted(id, 1n, api.deps.clock.now());
    await api.operations.conclude({ ...answer, expectedAppNo: 8n });
    const [heading, row] = (await run('quarantine')).out.split('\n');
    expect(heading).toMatch(/^since {2,}kind {2,}id {2,}amount {2,}reason$/);
    expect(row).toMatch(new RegExp(`  operation  ${id}  100 {2,}foreign_tx_app_no$`));
    const { data } = JSON.parse((await run('quarantine', '--json')).out);
    expect(data).toMatchObject([{ kind: 'operation', id, amount: '100' }]);
    const released = await run('quarantine', 'release', id, '--reason', 'confirmed');
    expect(released.out).toBe(`Released ${id}, which was quarantined for: foreign_tx_app_no\n`);
    const again = await run('quarantine', 'release', id, '--reason', 'confirmed');
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('not_found') });
    const missing = await run('quarantine', 'release', 'wallet:0x1', '--reason', 'x', '--json');
    expect(missing.err).toContain('no quarantined observation wallet:0x1');
  });
});

it('tallyhook keys create accepts limits and an end, and shows an example for invalid ones', async () => {
  const limits = { kinds: ['give'], amount_per_day: '1000' };
  const create = (text: string) =>
    run('keys', 'create', '--owner', 'shop', '--json', '--limits', text);
  const created = await create(JSON.stringify(limits));
  expect(JSON.parse(created.out)).toMatchObject({ owner: 'shop', limits });
  const until = '2199-01-01T00:00:00.000Z';
  const some = ['keys', 'create', '--owner', 'shop', '--json', '--expires'];
  for (const change of [{}, { TALLYHOOK_KEY: '' }])
    expect(JSON.parse((await runWith(change, ...some, until)).out)).toMatchObject({
      expires_at: until,
    });
  expect(await run(...some, 'tomorrow')).toMatchObject({
    code: 1,
    err: expect.stringContaining('expected RFC 3339'),
  });
  const refused = await create('{"kinds":["gift"]}');
  expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/kinds\.0.*for example/) });
});

it('tallyhook keys works through the daemon, and with a key touches no database', async () => {
  const nowhere = { DATABASE_URL: 'postgres://a@127.0.0.1:9/none' };
  const create = ['keys', 'create', '--owner', 'till', '--scope', 'read', 'gateway', '--json'];
  const { id, secret } = JSON.parse((await runWith(nowhere, ...create)).out);
  expect(secret).toMatch(/^thk_/);
  const list = async (change: NodeJS.ProcessEnv) =>
    JSON.parse((await runWith(change, 'keys', 'list', '--json')).out).data;
  const listed = await list(nowhere);
  expect(listed.find((key: { id: string }) => key.id === id)).toMatchObject({ owner: 'till' });
  // Without a key the rows of the database read the same.
  expect(await list({ TALLYHOOK_KEY: '' })).toEqual(listed);
  const less = await runWith({ ...nowhere, TALLYHOOK_KEY: secret }, 'keys', 'list');
  expect(less).toMatchObject({ code: 1, err: expect.stringContaining('403') });
  expect((await runWith(nowhere, 'keys', 'revoke', id)).out).toBe(`Revoked ${id}\n`);
  const [revoked] = (await list(nowhere)).filter((key: { id: string }) => key.id === id);
  expect(revoked.revoked_at).not.toBeNull();
});

it('A command that needs the database never creates one', async () => {
  const empty = join(folder, 'empty');
  const change = { DATABASE_URL: '', MASTER_KEY: '', TALLYHOOK_KEY: '', DATA_DIR: empty };
  const { code, err } = await runWith(change, 'keys', 'create', '--owner', 'shop');
  expect([code, err]).toEqual([1, expect.stringMatching(/^there is no database in .*empty; set/)]);
  await expect(readdir(empty)).rejects.toMatchObject({ code: 'ENOENT' });
});

it('Every command has a description and an example in its help', () => {
  const missing: string[] = [];
  const check = (command: Command, path: string) => {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    if (!command.description() || !/\nExamples?:\n {2}\S/.test(help)) missing.push(path);
    for (const inner of command.commands) check(inner, `${path} ${inner.name()}`);
  };
  check(makeProgram(), 'tallyhook');
  expect(missing).toEqual([]);
});

it('tallyhook report prints the CSV of a month, with and without the mark of UTF-8', async () => {
  const csv = ['report', '--period', '2026-01', '--format', 'csv'];
  const { code, out } = await run(...csv);
  expect({ code, head: out.slice(0, 21) }).toEqual({ code: 0, head: '\ufeffsection,item,detail,' });
  expect(out).toContain('\r\nreport,from,2025-12-31T15:00:00.000Z,');
  expect((await run(...csv, '--no-bom')).out.slice(0, 8)).toBe('section,');
});

it('tallyhook report without a period says how to name one', async () => {
  const line = 'name the time: --period 2026-11, or --from and --to\n';
  expect(await run('report')).toMatchObject({ code: 1, err: line });
  expect(await run('report', '--from', '2026-01')).toMatchObject({ code: 1, err: line });
});
