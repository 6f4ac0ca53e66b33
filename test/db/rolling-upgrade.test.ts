/**
 * Two daemons of the last release are replaced one by one by the present program and back, under a
 * load of writes through both, on a database that is migrated while they work.
 */
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { makeApp } from '../harness/app.ts';
import { type DaemonProcess, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';
import { over, useEmptyDatabases } from './empty-database.ts';
import { commitOf, unpackProgram } from './releases/program.ts';
import { startLoad } from './releases/upgrade-load.ts';

const versions = globSync('releases/*/', { cwd: import.meta.dirname })
  .map((folder) => basename(folder))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
const LAST = versions.at(-1) ?? '';
const commit = await commitOf(LAST);
const SETTINGS = { ...QUICK, daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 15_000 } };
const UNTIL = { deadlineMs: 90_000 };

const databases = useEmptyDatabases();
const world = await useWorld();

describe.skipIf(!commit)(`Two daemons of release ${LAST} under load`, () => {
  let former: Awaited<ReturnType<typeof unpackProgram>>;
  let url: string;
  let receiver: Receiver;
  let load: ReturnType<typeof startLoad>;
  const daemons: DaemonProcess[] = [];
  const start = (root?: string) => spawnDaemon(environmentOf(url, world.sandbox.url), SETTINGS, root);
  const app = makeApp(() => (daemons.find((d) => d.child.exitCode === null) as DaemonProcess).url);

  beforeAll(async () => {
    former = await unpackProgram(commit ?? '');
    [url, receiver] = await Promise.all([databases.make(), startReceiver()]);
    daemons.push(await start(former.root), await start(former.root));
    const endpoint = { url: `${receiver.url}/hook`, event_types: ['*'] };
    expect((await app.call('POST', '/api/endpoints', endpoint)).status).toBe(201);
    const ordered = { url: `${receiver.url}/ordered`, event_types: ['*'], ordering: 'subject' };
    expect((await app.call('POST', '/api/endpoints', ordered)).status).toBe(201);
    load = startLoad(world, daemons);
  });
  afterAll(async () => {
    await load?.stop();
    await Promise.all(daemons.map((daemon) => daemon.kill()));
    await receiver?.close();
    await former?.remove();
  });

  /** Replaces each daemon by one of the program, which starts first. */
  async function replaceAll(root?: string): Promise<void> {
    for (const old of [...daemons]) {
      const successor = await start(root);
      daemons.push(successor);
      await load.more(20);
      daemons.splice(daemons.indexOf(old), 1);
      await Promise.all([old.stop(), load.more(20)]);
      await load.more(20);
    }
  }

  async function deliveredAll(): Promise<void> {
    const ids = (await app.events()).filter((e) => !e.type.startsWith('endpoint.')).map((e) => e.id);
    for (const path of ['/hook', '/ordered']) {
      const missing = () => {
        const got = new Set(
          receiver.requests.flatMap(({ path: p, headers }) => (p === path ? [headers['webhook-id']] : [])),
        );
        return ids.filter((id) => !got.has(id)).length;
      };
      await until(async () => missing() === 0 || undefined, { deadlineMs: 20_000 });
      expect(missing(), path).toBe(0);
    }
  }

  it('a', async () => {
    await load.more(40);
    await deliveredAll();
    const started = performance.now();
    const before = load.mark();
    console.log(await migrate(url), performance.now() - started, 'ms');
    await load.more(100);
    console.log('migrated', load.since(before), receiver.requests.length);
    await deliveredAll().catch((e) => console.log(String(e)));
  });

  it('b', async () => {
    const before = load.mark();
    await replaceAll();
    console.log('replaced', load.since(before));
    await deliveredAll().catch((e) => console.log(String(e)));
  });

  it('c', async () => {
    const before = load.mark();
    await replaceAll(former.root);
    console.log('back', load.since(before));
    await deliveredAll().catch((e) => console.log(String(e)));
  });

  it('d', async () => {
    await load.stop();
    const open = () => over(url, async ({ sql }) => {
      const [row] = await sql<{ n: number }[]>`
        select count(*)::int as n from tallyhook.operations where settled_at is null`;
      return row?.n === 0 || undefined;
    });
    await until(open, UNTIL);
    await deliveredAll();
    for (const d of daemons) console.log(d.output().split('\n').filter((l) => /"level":(50|40|60)/.test(l)).slice(-10).join('\n'));
  });
});
