/**
 * Promise 14. A database is copied while a write waits in it; the original goes on, and the copy is
 * started in its place, as after the restore of a backup.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { jsonText } from '../../src/kernel/json.ts';
import { type App, makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const QUEUED = 5_001;
const AFTER = 5_002;
const EXPIRING = 5_003;
const world = await useWorld();
const folder = useFolder();
let daemon: DaemonProcess;
let app: App;
let server: postgres.Sql;
/** Of the database that the current daemon uses. */
let url: string;

const keyed = (key: string) => ({ 'idempotency-key': key });
const environment = () => ({ ...environmentOf(url, world.sandbox.url), DATA_DIR: folder });
const applied = (amount: number) =>
  world.sandbox.control.effects(0n, 10_000).filter((e) => e.amount === BigInt(amount)).length;

async function start() {
  daemon = await spawnDaemon(environment(), QUICK);
  app = makeApp(() => daemon.url);
}

/** Copies the database of the stopped daemon; returns the URL of the copy. */
async function copyOf(source: string): Promise<string> {
  const original = new URL(source).pathname.slice(1);
  const name = `${original}_copy`;
  // A pooler keeps connections of the daemon that has ended.
  await server`select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = ${original}`;
  await server.unsafe(`create database ${name} template ${original}`);
  const copy = new URL(source);
  copy.pathname = `/${name}`;
  return copy.href;
}

/** Queues a give during maintenance, which then still lasts. */
async function queueGive(amount: number, key: string): Promise<string> {
  world.sandbox.control.maintenance({ state: 'on' });
  const answer = await app.give(world.ada, amount, { prefer: 'respond-async', ...keyed(key) });
  expect(answer.status).toBe(202);
  return String(answer.headers['tallyhook-operation']);
}

const codeOf = ({ status, json }: Awaited<ReturnType<App['give']>>) => [status, json.code];
const stateOf = async (id: string) => (await app.call('GET', `/api/operations/${id}`)).json.state;
const reaches = (id: string, ...states: string[]) =>
  until(async () => states.includes(await stateOf(id)) || undefined, { deadlineMs: 60_000 });
/** Sent, and answered by the service. */
const isSent = (id: string) => reaches(id, 'accepted', 'settled');
const doctor = (...args: string[]) => runCommand(environment(), 'doctor', '--restored', ...args);
const countPasses = async (worker: string) => {
  const { text } = await app.call('GET', '/metrics');
  const count = new RegExp(`worker_pass_seconds_count{worker="${worker}"} (\\d+)`);
  return Number(count.exec(text)?.[1] ?? 0);
};
/**
 * Waits until queued writes have been claimed and ended twice more, had they been due; without any,
 * until twice none was found.
 */
async function passes(workers = ['queue', 'operations']) {
  for (const worker of workers) {
    const before = await countPasses(worker);
    const more = async () => (await countPasses(worker)) > before + 1 || undefined;
    expect(await until(more), worker).toBe(true);
  }
}

beforeAll(async () => {
  server = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} });
  url = world.database.url;
});
afterAll(async () => {
  await daemon?.kill();
  const name = new URL(world.database.url).pathname.slice(1);
  await server.unsafe(`drop database if exists ${name}_copy with (force)`);
  await server.end();
});

describe('A copy that is started while the original has gone on', () => {
  let queued: string;
  let expiring: string;
  const feed = () => join(folder, 'feed.ndjson');

  beforeAll(async () => {
    await start();
    const before = await app.give(world.ada, 11, keyed('before'));
    expect(await reaches(String(before.headers['tallyhook-operation']), 'settled')).toBe(true);
    queued = await queueGive(QUEUED, 'queued');
    expiring = await queueGive(EXPIRING, 'expiring');
    await daemon.stop();
    const copy = await copyOf(url);
    await start();
    world.sandbox.control.maintenance({ state: 'off' });
    expect([await isSent(queued), await isSent(expiring)]).toEqual([true, true]);
    expect((await app.give(world.ada, AFTER, keyed('after'))).status).toBe(200);
    await app.until((e) => e.data.idempotency_key === 'after');
    // A subscriber keeps the events.
    const events = (await app.events()).filter(({ data }) => data.idempotency_key !== 'before');
    await writeFile(feed(), events.map((event) => `${jsonText(event)}\n`).join(''));
    await daemon.stop();
    url = copy;
    await start();
  }, 120_000);

  it('It starts frozen: nothing queued is sent, no write is accepted, and nobody unfreezes it', async () => {
    expect(daemon.output()).toContain('restored from a backup or copied');
    await passes();
    expect(await stateOf(queued)).toBe('queued');
    for (const key of ['after', 'new'])
      expect((await app.give(world.ada, AFTER, keyed(key))).json.code).toBe('frozen');
    const unfreeze = await app.call('POST', '/api/unfreeze', { reason: 'go on' });
    expect([unfreeze.status, unfreeze.json.detail]).toEqual([
      409,
      expect.stringContaining('doctor --restored'),
    ]);
    const cancel = await app.call('DELETE', `/api/operations/${queued}`);
    expect(cancel.json.detail).toMatch(/may have been sent/);
    // What the copy knows is still answered.
    const repeat = await app.give(world.ada, 11, keyed('before'));
    expect(repeat.headers['idempotency-replayed']).toBe('true');
    expect([applied(QUEUED), applied(AFTER)]).toEqual([1, 1]);
  });

  it('A restart does not release it, and a write that expires meanwhile is not called unsent', async () => {
    await daemon.kill();
    const copy = postgres(url, { max: 1 });
    await copy`update tallyhook.operations set expires_at = now() where id = ${expiring}`;
    await copy.end();
    await start();
    expect((await app.give(world.ada, AFTER, keyed('after'))).json.code).toBe('frozen');
    await passes();
    expect(await stateOf(expiring)).toBe('queued');
    const status = await app.call('GET', '/api/status');
    expect(status.json.freeze.reason).toMatch(/restored/);
  });

  it('The doctor lists what is queued and which balances differ', async () => {
    const { code, text } = await doctor('--json');
    expect(code).toBe(1);
    const found = JSON.parse(text);
    expect(found).toMatchObject({ held: { cause: 'restored' }, released: false });
    expect(found.operations).toMatchObject([
      { id: expiring, state: 'queued', idempotency_key: 'expiring' },
      { id: queued, state: 'queued', amount: `${QUEUED}` },
    ]);
    expect(found.wallets.compared).toBeGreaterThan(0);
    expect(found.wallets.different.map(({ addr }: { addr: string }) => addr)).toContain(world.ada);
    expect((await doctor()).text).toMatch(/Held since .*restored.*\n(.*\n)*queued {2}op_/);
  });

  it('After the release new writes work, and no key or queued write of the original is used again', async () => {
    const missing = await doctor('--keys-used', join(folder, 'none'), '--release', 'x');
    expect(missing).toMatchObject({ code: 1, text: expect.stringContaining('cannot be read') });
    expect(missing.text).not.toContain('Released');
    const wrong = join(folder, 'wrong');
    // Nothing of it is taken: the key is used below.
    await writeFile(wrong, `${'new\n'.repeat(1_500)}\x7fELF\n`);
    const refused = await doctor('--keys-used', wrong);
    expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('wrong:1501 is no') });
    const named = JSON.parse((await doctor('--keys-used', feed(), '--dry-run', '--json')).text);
    expect(named).toMatchObject({ keys_named: expect.any(Number), keys_taken: 0 });
    expect(named.keys_named).toBeGreaterThan(0);
    const { code, text } = await doctor('--keys-used', feed(), '--release', 'compared');
    expect(code, text).toBe(0);
    expect(text).toContain('Released. What was queued becomes unknown and ends by evidence\n');
    expect(await reaches(queued, 'unknown')).toBe(true);
    const repeat = await app.give(world.ada, AFTER, keyed('after'));
    expect(codeOf(repeat)).toEqual([409, 'key_used_since_backup']);
    // Unknown, until evidence has shown that the original sent it.
    for (const [amount, key] of [[QUEUED, 'queued'] as const, [EXPIRING, 'expiring'] as const])
      expect([
        [504, 'outcome_unknown'],
        [409, 'executed_without_number'],
      ]).toContainEqual(codeOf(await app.give(world.ada, amount, keyed(key))));
    expect((await app.give(world.ben, 12, keyed('new'))).status).toBe(200);
    await passes(['search']);
    expect([QUEUED, EXPIRING, AFTER, 12].map(applied)).toEqual([1, 1, 1, 1]);
  });

  it('What the original did with them is not inferred from balances that it changed otherwise too', async () => {
    for (const id of [queued, expiring]) expect(await reaches(id, 'undecided')).toBe(true);
    const repeat = await app.give(world.ada, QUEUED, keyed('queued'));
    expect(codeOf(repeat)).toEqual([504, 'outcome_unknown']);
    await daemon.kill();
    await start();
    expect((await app.give(world.ben, 13)).status).toBe(200);
    expect((await doctor('--release', 'again')).text).toMatch(/nothing is held/);
  });
});

describe('A promoted standby', () => {
  const sql = () => world.database.owner.sql;
  /** As if the next start found another timeline than the last one. */
  const promote = async () => {
    await sql()`update tallyhook.installation
      set value = jsonb_set(value::jsonb, '{timeline}', '"000000FE"')::text
      where name = 'identity'`;
  };

  beforeAll(async () => {
    await daemon?.stop();
    url = world.database.url;
    await start();
  }, 60_000);

  it('It holds what was queued before, and new writes go on, queued ones too', async () => {
    const held = await queueGive(6_001, 'held');
    await daemon.stop();
    await promote();
    await start();
    const next = await queueGive(6_002, 'next');
    world.sandbox.control.maintenance({ state: 'off' });
    expect(await isSent(next)).toBe(true);
    expect((await app.give(world.ben, 6_003)).status).toBe(200);
    expect(await stateOf(held)).toBe('queued');
    expect(JSON.parse((await doctor('--json')).text)).toMatchObject({
      held: { cause: 'failover' },
    });
    expect((await doctor('--release', 'no lag', '--send-queued')).code).toBe(0);
    expect(await isSent(held)).toBe(true);
    expect([6_001, 6_002, 6_003].map(applied)).toEqual([1, 1, 1]);
  }, 60_000);

  it('A daemon that runs through the failover holds what was queued, unless its key is in the file', async () => {
    const named = await queueGive(6_004, 'named');
    const other = await queueGive(6_005, 'other');
    await promote();
    const status = async () => (await doctor('--json')).code === 1 || undefined;
    expect(await until(status)).toBe(true);
    world.sandbox.control.maintenance({ state: 'off' });
    await writeFile(join(folder, 'keys.txt'), 'named\n\nunrelated\n');
    const args = ['--keys-used', join(folder, 'keys.txt'), '--send-queued'];
    const { text } = await doctor(...args, '--release', 'named was sent', '--json');
    expect(JSON.parse(text)).toMatchObject({ keys_taken: 2, released: true });
    expect(await isSent(other)).toBe(true);
    const unsent = async () => (await stateOf(named)) !== 'queued' || undefined;
    expect(await until(unsent)).toBe(true);
    expect([6_004, 6_005].map(applied)).toEqual([0, 1]);
  }, 60_000);

  it('Without queued writes a failover holds nothing', async () => {
    await promote();
    await passes(['search']);
    expect(JSON.parse((await doctor('--json')).text).held).toBeNull();
    expect((await app.give(world.ben, 6_006)).status).toBe(200);
  });
});

describe('A disk that is restored', () => {
  const counter = async () => {
    const [row] = await world.database.owner.sql<{ value: string }[]>`
      select value from tallyhook.installation where name = 'counter'`;
    return Number(row?.value);
  };

  it('A database that is older than DATA_DIR knows it starts frozen, once', async () => {
    const snapshot = await counter();
    const later = async () => (await counter()) > snapshot + 1 || undefined;
    expect(await until(later)).toBe(true);
    await daemon.stop();
    await world.database.owner.sql`
      update tallyhook.installation set value = ${String(snapshot)} where name = 'counter'`;
    await start();
    expect(daemon.output()).toContain('is older than DATA_DIR or a running daemon knows it');
    expect((await app.give(world.ben, 7_001)).json.code).toBe('frozen');
    expect((await doctor('--release', 'compared')).code).toBe(0);
    await daemon.kill();
    await start();
    expect((await app.give(world.ben, 7_002)).status).toBe(200);
  }, 60_000);
});
