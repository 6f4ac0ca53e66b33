/** `tallyhook service move`, with whole daemons and the sandbox under two addresses. */
import { once } from 'node:events';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { ADMIN_KEY, CLIENT, environmentOf, QUICK, spawnDaemon } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
/** The same wallets, without what this app wrote. */
const other = await startSandbox({ ...CLIENT, seed: 11, clock: systemClock, settleMs: 150 });
afterAll(() => other.close());

/** The same sandbox under another name. */
const moved = () => rig.world.sandbox.url.replace('127.0.0.1', 'localhost');
const keys: Record<string, string> = {};

const move = (service: string, owner: string, ...args: string[]) => {
  const environment = environmentOf(rig.world.database.url, service);
  const env = { ...environment, TALLYHOOK_KEY: keys[owner] ?? '' };
  return runCommand(env, 'service', 'move', ...args);
};

async function keyOf(owner: string, scope: string): Promise<string> {
  const { status, json, text } = await rig.app.call('POST', '/api/keys', {
    name: owner,
    owner,
    scopes: [scope],
  });
  expect(status, text).toBe(201);
  return json.key;
}

describe('tallyhook service move', () => {
  it('proves by a comparison that it is the same ledger, and a dry run writes nothing', async () => {
    keys.ann = await keyOf('ann', 'decide');
    keys.bob = await keyOf('bob', 'decide');
    keys.reader = await keyOf('reader', 'read');
    const { ada, ben } = rig.world;
    await rig.observe(ada, ben);
    await rig.eventOf(await rig.app.give(ada, 17), 'operation.settled');
    const { code, text } = await move(moved(), 'reader', '--dry-run');
    expect(code, text).toBe(0);
    expect(text).toContain(`To   ${moved()}`);
    expect(text).toContain('2 wallets compared, 0 unreadable; none differs\n');
    expect(text).toContain('The same ledger');
    const json = await move(moved(), 'reader', '--dry-run', '--json');
    expect(JSON.parse(json.text)).toMatchObject({ same: true, done: null, to: expect.any(String) });
    const approved = await move(moved(), 'bob', '--approve');
    expect(approved).toMatchObject({ code: 1, text: expect.stringContaining('no one proposed') });
  });

  it('refuses another ledger', async () => {
    expect(await move(other.url, 'ann', '--dry-run')).toMatchObject({
      code: 1,
      text: expect.stringContaining('another ledger: 1 wallets and 0 tokens differ, 0 cannot'),
    });
    const proposed = await move(other.url, 'ann', '--reason', 'a copy');
    expect(proposed).toMatchObject({ code: 1, text: expect.stringContaining('another ledger') });
  });

  it('refuses keys that may not decide, and a call without exactly one task', async () => {
    for (const [owner, reason] of [
      ['reader', 'scope decide'],
      ['nobody', 'an API key is required'],
    ] as const)
      expect((await move(moved(), owner, '--reason', 'x')).text).toContain(reason);
    expect((await move(moved(), 'ann')).text).toContain('one of --dry-run');
    expect((await move(rig.world.sandbox.url, 'ann', '--dry-run')).text).toContain('already');
  });

  it('needs two owners and no running daemon; then a daemon starts at the new address only', async () => {
    const environment = environmentOf(rig.world.database.url, moved());
    await expect(spawnDaemon(environment, QUICK)).rejects.toThrow('belongs to another service');
    const proposed = await move(moved(), 'ann', '--reason', 'new address');
    expect(proposed).toMatchObject({ code: 0, text: expect.stringContaining('Proposed') });
    expect((await move(moved(), 'ann', '--approve')).text).toContain('ann proposed it');
    expect((await move(moved(), 'bob', '--approve')).text).toContain('1 daemons work with');
    expect(await rig.daemon.stop()).toBe(0);
    const approved = await move(moved(), 'bob', '--approve');
    expect(approved.code, approved.text).toBe(0);
    const former = environmentOf(rig.world.database.url, rig.world.sandbox.url);
    await expect(spawnDaemon(former, QUICK)).rejects.toThrow('belongs to another service');
    const daemon = await spawnDaemon(environment, QUICK);
    try {
      const app = makeApp(() => daemon.url, ADMIN_KEY);
      const { status, text } = await app.give(rig.world.ada, 19);
      expect(status, text).toBe(200);
      const { json } = await app.call('GET', '/api/audit');
      const actions = json.data.filter(({ action }: { action: string }) => /^service/.test(action));
      expect(actions.map((entry: Record<string, string>) => [entry.owner, entry.result])).toEqual([
        ['bob', 'done'],
        ['bob', 'conflict'],
        ['ann', 'same_owner'],
        ['ann', 'done'],
        ['bob', 'conflict'],
      ]);
    } finally {
      await daemon.stop();
    }
  });

  it('ends a daemon that was paused while the database moved, before it sends anything', async () => {
    const { database, sandbox, ada } = rig.world;
    // It does not wait for balancers to notice.
    const patient = { ...QUICK, daemon: { ...QUICK.daemon, unready_ms: 600_000 } };
    const daemon = await spawnDaemon(environmentOf(database.url, moved()), patient);
    try {
      const app = makeApp(() => daemon.url, ADMIN_KEY);
      const exited = once(daemon.child, 'exit');
      const back = async (owner: string, ...args: string[]) =>
        (await move(sandbox.url, owner, ...args)).code;
      // The last write settles.
      await expect.poll(() => back('ann', '--dry-run'), { timeout: 20_000 }).toBe(0);
      daemon.child.kill('SIGSTOP');
      expect(await back('ann', '--reason', 'back')).toBe(0);
      await expect.poll(() => back('bob', '--approve'), { timeout: 30_000 }).toBe(0);
      daemon.child.kill('SIGCONT');
      const { status, text } = await app.give(ada, 23);
      expect(status, text).toBe(503);
      expect(await exited).toEqual([1, null]);
      const fatal = daemon.output().match(/^.*the database belongs to another service now.*$/gm);
      expect(fatal?.filter((line) => line.includes('"fatal"'))).toEqual([
        expect.stringContaining('run npx tallyhook service move'),
      ]);
      expect(rig.effects(23)).toEqual([]);
    } finally {
      daemon.child.kill('SIGCONT');
      await daemon.kill();
    }
  }, 90_000);
});
