/** The admin key that the first start generates, and the one that ADMIN_KEY names. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import { environmentOf, QUICK, spawnDaemon, startDaemon } from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const world = await useWorld();

it('A first start that fails on a busy port loses no key: the next one shows it', async () => {
  const { ADMIN_KEY: _, ...env } = environmentOf(world.database.url, world.sandbox.url);
  const busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
  const port = String((busy.address() as AddressInfo).port);
  const failed = await runCommand({ ...env, PORT: port, LOG_LEVEL: 'fatal' }, 'start');
  expect(failed).toMatchObject({ code: 1, text: expect.stringMatching(/is in use; set PORT/) });
  await new Promise((resolve) => busy.close(resolve));
  const daemon = await spawnDaemon(env, QUICK);
  // The banner goes on after the line that says ready.
  const shown = async () => /admin key thk_\S+ \(shown only/.test(daemon.output()) || undefined;
  expect(await until(shown)).toBe(true);
  await daemon.stop();
});

it('A start with another ADMIN_KEY revokes the former key, and no later start brings it back', async () => {
  const [former, later] = [`thk_${'f'.repeat(43)}`, `thk_${'l'.repeat(43)}`];
  const startedWith = async (key: string) => {
    const daemon = await startDaemon(world, {}, { ADMIN_KEY: key });
    const statusOf = async (secret: string) =>
      (await fetch(`${daemon.url}/api/keys`, { headers: { authorization: `Bearer ${secret}` } }))
        .status;
    const statuses = [await statusOf(former), await statusOf(later)];
    await daemon.stop();
    const warned = daemon.output().includes('ADMIN_KEY is a key that is revoked');
    return { statuses, warned };
  };
  expect(await startedWith(former)).toEqual({ statuses: [200, 401], warned: false });
  expect(await startedWith(later)).toEqual({ statuses: [401, 200], warned: false });
  expect(await startedWith(former)).toEqual({ statuses: [401, 200], warned: true });
});
