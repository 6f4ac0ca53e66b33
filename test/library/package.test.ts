/** What the package for apps declares. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const readJson = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));

it('The receiver of the package needs no other package', () => {
  const files = globSync('library/receive/*.ts', { cwd: ROOT });
  const imported = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/ from '([^']+)'/g)].map(
      ([, name]) => name,
    ),
  );
  expect(imported.length).toBeGreaterThan(20);
  expect(imported.filter((name) => !/^(?:\.\/|node:)/.test(name ?? ''))).toEqual([]);
});

it('The package has the version of the daemon, and the one dependency that is tested', () => {
  const [own, root] = [readJson('library/package.json'), readJson('package.json')];
  expect(own.version).toBe(root.version);
  const tested = { 'openapi-fetch': root.devDependencies['openapi-fetch'] };
  expect(own.dependencies).toEqual(tested);
});
