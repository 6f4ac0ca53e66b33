/** The master key: a wrong one refuses the start, and it can be replaced. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/daemon/daemon.ts';
import { openProvedKeys } from '../../src/daemon/master-key.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { environmentOf, QUICK, spawnDaemon, startDaemon } from '../harness/daemon.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';
import { startReceiver } from '../harness/receiver.ts';
import { useWorld } from '../harness/rig.ts';

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
/** The key of the harness. */
const PRESENT = keyOf(7);
const NEW = keyOf(8);
const world = await useWorld();
const folder = useFolder();

/** Runs a command on the world; returns its exit code and the lines it printed. */
function run(keys: Record<string, string>, ...args: string[]) {
  const { MASTER_KEY: _, ...env } = environmentOf(world.database.url, world.sandbox.url);
  return runCommand({ ...env, DATA_DIR: folder, ...keys }, ...args);
}

const rotate = (keys: Record<string, string>, ...args: string[]) =>
  run(keys, 'rotate-master-key', ...args);
const start = (keys: Record<string, string>) =>
  spawnDaemon({ ...environmentOf(world.database.url, world.sandbox.url), ...keys }, QUICK);

describe('The master key', () => {
  it('A start with another master key ends with one line that says what to do', async () => {
    await (await startDaemon(world)).stop();
    const { code, text } = await run({ MASTER_KEY: NEW }, 'start');
    expect(code).toBe(1);
    expect(text.trim().split('\n')).toEqual([expect.stringMatching(/^MASTER_KEY is not the key/)]);
    expect(text).toContain('set it to that key (to replace it, to the new key, and MASTER_KEY_OLD');
    const doctor = await run({ MASTER_KEY: NEW }, 'doctor');
    expect(doctor.text).toMatch(/FAIL {2}master key: MASTER_KEY is not the key/);
  });

  it('An external database requires it of a start and of the doctor, and not of a command that reads', async () => {
    const refusal = /MASTER_KEY must be .*DATABASE_URL requires it/;
    const started = await run({}, 'start');
    expect([started.code, started.text]).toEqual([1, expect.stringMatching(refusal)]);
    expect((await run({}, 'doctor')).text).toMatch(refusal);
    expect(await run({}, 'verify')).toMatchObject({ code: 0 });
  });

  it('Every encrypted column of the database is one that the rotation encrypts again', async () => {
    const columns = await world.database.owner.sql<{ name: string }[]>`
      select c.relname || '.' || a.attname as name
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'tallyhook'::regnamespace and a.attname ~ 'encrypted|cipher|sealed'
      order by 1`;
    expect(columns.map(({ name }) => name)).toEqual([
      'endpoints.encrypted_auth',
      'endpoints.encrypted_destination',
      'endpoints.encrypted_headers',
      'endpoints.encrypted_secrets',
    ]);
  });

  it('A rotation with daemons running keeps every secret, and then refuses the former key', async () => {
    const receiver = await startReceiver();
    let daemon = await startDaemon(world);
    const app = makeApp(() => daemon.url);
    const { json: made } = await app.call('POST', '/api/endpoints', {
      url: `${receiver.url}/hook`,
      event_types: ['endpoint.test'],
      headers: { 'x-plant': 'kept' },
    });
    const both = { MASTER_KEY: NEW, MASTER_KEY_OLD: PRESENT };
    const early = await rotate(both);
    expect(early).toMatchObject({
      code: 1,
      text: expect.stringMatching(/^1 daemon.* without the/),
    });
    await daemon.stop();

    daemon = await start(both);
    const half = await run({ MASTER_KEY: PRESENT }, 'start');
    expect(half.text).toMatch(/^the rotation of MASTER_KEY is not finished; set MASTER_KEY to the/);
    const dry = await rotate(both, '--dry-run', '--json');
    expect(JSON.parse(dry.text)).toMatchObject({ dry_run: true, endpoints: 1, reencrypted: 1 });
    expect(JSON.parse((await rotate(both, '--json')).text)).toMatchObject({ reencrypted: 1 });
    expect(JSON.parse((await rotate(both, '--json')).text)).toMatchObject({ reencrypted: 0 });
    await app.call('POST', `/api/endpoints/${made.id}/test`);
    expect((await receiver.next()).headers['x-plant']).toBe('kept');
    await daemon.stop();

    expect((await run({ MASTER_KEY: PRESENT }, 'start')).text).toMatch(
      /^MASTER_KEY is not the key/,
    );
    daemon = await start({ MASTER_KEY: NEW });
    await app.call('POST', `/api/endpoints/${made.id}/test`);
    expect((await receiver.next()).headers['x-plant']).toBe('kept');
    await daemon.stop();
    await receiver.close();
  });

  it('A rotation needs both keys, and never deletes secrets that can be decrypted', async () => {
    const one = await rotate({ MASTER_KEY: NEW });
    expect(one.text).toMatch(/^set MASTER_KEY to the new key .* and MASTER_KEY_OLD to the present/);
    expect((await rotate({ MASTER_KEY: NEW }, '--lost')).text).toMatch(/is not lost/);
    const wrong = await rotate({ MASTER_KEY: keyOf(1), MASTER_KEY_OLD: keyOf(2) });
    expect(wrong.text).toMatch(/^MASTER_KEY is not the key/);
  });

  it('After the key was lost the endpoints are deleted, and the new key starts', async () => {
    const lost = await rotate({ MASTER_KEY: keyOf(9) }, '--lost', '--json');
    expect(JSON.parse(lost.text)).toMatchObject({ endpoints: 1, reencrypted: 0, deleted: 1 });
    const daemon = await start({ MASTER_KEY: keyOf(9) });
    const { json } = await makeApp(() => daemon.url).call('GET', '/api/endpoints');
    expect(json.data).toEqual([]);
    await daemon.stop();
  });
});

describe('The generated master key', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  it('A missing key file is not replaced by a new key when secrets need the old one', async () => {
    const opened = { db: database.db, clock: { ...systemClock, correctionMs: () => 0 } };
    const config = { ...loadConfig({ DATA_DIR: folder }) };
    await openProvedKeys(opened as never, config, systemRandom);
    const path = join(folder, 'master.key');
    const key = await readFile(path, 'utf8');
    await rm(path);
    const open = () => openProvedKeys(opened as never, config, systemRandom);
    await expect(open()).rejects.toMatchObject({ detail: expect.stringContaining('is missing') });
    await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' });
    await writeFile(path, key);
    await open();
  });
});
