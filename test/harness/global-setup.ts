/**
 * Once per test run: a real Postgres (the embedded one in a temporary folder, or the one that
 * TEST_DATABASE_URL names) with one migrated template database that every test file clones.
 */
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import type { TestProject } from 'vitest/node';
import { type EmbeddedServer, openEmbedded } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A login that may create databases, at the server's own database. */
    serverUrl: string;
    template: string;
  }
}

const MEMORY = '/dev/shm';
const MEMORY_MIN = 4 * 1024 ** 3;

export default async function setup(project: TestProject) {
  const external = process.env.TEST_DATABASE_URL;
  const folder = external ? undefined : await mkdtemp(join(await fastFolder(), 'tallyhook-test-'));
  // As root the server runs as another user, who must get through.
  if (folder) await chmod(folder, 0o711);
  const embedded = folder ? await openServer(folder) : undefined;
  const serverUrl = external ?? (embedded?.url as string);
  const template = `template_${process.pid}`;
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} });
  await sql.unsafe(`drop database if exists ${template}`);
  await sql.unsafe(`create database ${template}`);
  await migrate(urlOf(serverUrl, template));
  project.provide('serverUrl', serverUrl);
  project.provide('template', template);
  return async () => {
    await sql.unsafe(`drop database if exists ${template} with (force)`);
    await sql.end();
    await embedded?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  };
}

/** Daemons of several files, killed ones among them, have more connections than an installation. */
async function openServer(directory: string): Promise<EmbeddedServer> {
  const first = await openEmbedded({ directory });
  const owner = postgres(first.url, { max: 1, onnotice: () => {} });
  await owner.unsafe('alter system set max_connections = 400');
  await owner.end();
  await first.stop();
  return openEmbedded({ directory });
}

/** A folder in memory, where the many small commits of the tests need not wait for a disk. */
async function fastFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > MEMORY_MIN ? MEMORY : tmpdir();
}

function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}
