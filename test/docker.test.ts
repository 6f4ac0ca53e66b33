/**
 * The image of the Dockerfile, built and run without Docker, with the services of compose.yaml in
 * their order on a Postgres of Debian.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createWorld, environmentOf, type World } from './harness/daemon.ts';
import { useFolder } from './harness/folder.ts';
import { buildImage, CAN_BUILD, lineOf, outputOf } from './harness/image.ts';
import { freePort } from './harness/listen.ts';
import { startPasswordServer } from './harness/postgres-programs.ts';
import { execute } from './harness/temporary-server.ts';

const COMPOSE = join(import.meta.dirname, '../config/compose.yaml');

describe('The image', () => {
  if (!CAN_BUILD) {
    it('is not built here, because only root may mount', () =>
      expect(process.geteuid?.()).not.toBe(0));
    return;
  }
  const folder = useFolder();
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  it('becomes healthy on a read-only root with the services of compose.yaml, and stops on its signal', async () => {
    // Node and npm of this machine.
    const image = await buildImage(folder, (text) => text.includes('nodejs npm'));
    const data = join(folder, 'data');
    await mkdir(data);
    await chmod(folder, 0o755);
    await chown(data, 10_001, 10_001);
    const server = await startPasswordServer('of-postgres-012345');
    let daemon: ChildProcess | undefined;
    try {
      await execute(server.url, 'create database tallyhook');
      const services = await servicesOf(new URL(server.url).host, world.sandbox.url);
      for (const name of ['setup', 'migrate'] as const) {
        const { command, environment } = services[name];
        const { code, text } = await outputOf(image.start(command, { env: environment, data }));
        expect([name, code, text]).toEqual([name, 0, expect.any(String)]);
      }
      const env = { ...services.tallyhook.environment, PORT: String(await freePort()) };
      daemon = image.start(image.command, { env, data });
      const ended = once(daemon, 'exit');
      await lineOf(daemon, /ready at http:\/\/localhost:/);
      const run = (...args: string[]) => outputOf(image.start(args, { env, data }));
      expect(await run(...image.health)).toEqual({ code: 0, text: '' });
      const doctor = await run('tallyhook', 'doctor');
      expect([doctor.code, doctor.text]).toEqual([0, expect.stringContaining('no superuser')]);
      const user = await run('sh', '-c', 'id -un; touch /app/x /x');
      expect(user.text).toMatch(/^tallyhook\n(?:touch: .*Read-only file system\n){2}$/);
      daemon.kill('SIGTERM');
      expect((await ended)[0]).toBe(0);
      expect(await readFile(join(data, 'database-counter.json'), 'utf8')).toContain('"counter"');
    } finally {
      daemon?.kill('SIGTERM');
      await server.close();
    }
  }, 600_000);
});

interface Service {
  command: string[];
  environment: Record<string, string>;
}

/** Of compose.yaml, with what a person sets, and Postgres and the service at these addresses. */
async function servicesOf(
  postgres: string,
  service: string,
): Promise<Record<'setup' | 'migrate' | 'tallyhook', Service>> {
  const given: Record<string, string> = {
    ...environmentOf('postgres://unused/unused', service),
    POSTGRES_PASSWORD: 'of-postgres-012345',
    OWNER_PASSWORD: 'of-the-owner-01234',
    DAEMON_PASSWORD: 'of-the-daemon-0123',
  };
  const text = (await readFile(COMPOSE, 'utf8'))
    .replaceAll(/\$\{(\w+):\?\}/g, (_, name) => given[name] ?? '')
    .replaceAll('@postgres/', `@${postgres}/`);
  return parse(text, { merge: true }).services;
}
