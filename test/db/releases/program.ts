/** The program of a former release, which `make.ts` has kept. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

const archiveOf = (version: string) => join(import.meta.dirname, version, 'program.tar.gz');

/** Keeps the program that is committed. */
export async function keepProgram(version: string): Promise<void> {
  const parts = ['src', 'drizzle', 'config', 'package.json'];
  await run('git', ['archive', '-o', archiveOf(version), 'HEAD', ...parts], { cwd: ROOT });
}

/** Unpacks a release into a folder that `remove` deletes; its packages are those of this one. */
export async function unpackProgram(
  version: string,
): Promise<{ root: string; remove(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'tallyhook-release-'));
  await run('tar', ['-xzf', archiveOf(version), '-C', root]);
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}
