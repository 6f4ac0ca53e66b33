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

it('The package needs the Node that the page of its integration names, and has its licence', () => {
  const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
  const [, named] = /Node (\S+) or newer/.exec(read('docs/integrate.md')) ?? [];
  expect(readJson('library/package.json').engines).toEqual({ node: `>=${named}` });
  // The first release of Node with AbortSignal.any, which the client uses.
  expect(named).toBe('20.3');
  expect(read('library/README.md')).toContain(`Node ${named} or newer`);
  expect(readJson('library/package.json').files).toContain('LICENSE');
  expect(read('library/LICENSE')).toBe(read('LICENSE'));
});
