/** The program of a former release, from the history of this repository. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

/**
 * The commit that keeps the database of the release; undefined without the history, as in a shallow
 * clone or an unpacked archive.
 */
export async function commitOf(version: string): Promise<string | undefined> {
  const kept = `test/db/releases/${version}/rows.ndjson`;
  const args = ['log', '--diff-filter=A', '--format=%H', '--', kept];
  const { stdout } = await run('git', args, { cwd: ROOT }).catch(() => ({ stdout: '' }));
  const commit = stdout.trim().split('\n').at(-1);
  if (!commit) return undefined;
  // In a shallow clone its oldest commit seems to add every file.
  const { stdout: shallow } = await run('git', ['rev-parse', '--is-shallow-repository'], {
    cwd: ROOT,
  });
  return shallow.trim() === 'false' ? commit : undefined;
}

/** Unpacks the commit into a folder that `remove` deletes; its packages are those of this one. */
export async function unpackProgram(
  commit: string,
): Promise<{ root: string; remove(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'tallyhook-release-'));
  const tar = join(root, 'program.tar');
  await run('git', ['archive', '-o', tar, commit, 'src', 'drizzle', 'config', 'package.json'], {
    cwd: ROOT,
  });
  await run('tar', ['-xf', tar, '-C', root]);
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}
