/** The documents lead to the code: files that they name exist, and hold what src/README.md says. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');
const README = readFileSync(join(SRC, 'README.md'), 'utf8');

/** The answer to each question is in the file, at the text that fits the pattern. */
const QUESTIONS: [question: string, file: string, answer: RegExp][] = [
  ['Where are the stages wired?', 'daemon/build.ts', /makeOperations\(/],
  ['Which workers run?', 'daemon/workers/workers.ts', /runOnce\(/],
  ['Where is a 429 of the service handled?', 'upstream/rate/quota.ts', /throttled\(/],
  ['Which rate follows a 429?', 'upstream/rate/limiter.ts', /throttle/],
  ['When is a write sent again?', 'gateway/writes.ts', /resend/],
  ['Who may write `entries`?', 'ledger/batch.ts', /insert into tallyhook\.entries/],
  ['What guards `entries`?', '../drizzle/0001_guards.sql', /trigger \w+\s.*entries/],
  ['Which states may follow `sending`?', 'operations/operation.ts', /sending: \[/],
  ['How does a caller choose to wait?', 'gateway/http.ts', /respond-async/],
  ['How is a delivery claimed?', 'webhooks/delivery/queue.ts', /tallyhook\.claim_deliveries/],
  ['When is a delivery retried?', 'webhooks/delivery/attempt-result.ts', /retryAfter/],
  ['What does a setting mean?', '../config/default.yaml', /quiescence_ms/],
  ['Who reads which table?', '../test/tidy/tables.ts', /MAY_READ/],
];

/** Files and folders of the repository, named from its root. */
const PLACES = /(?<![\w./-])(?:src|test|drizzle|library|config)\/[\w./-]*\w/g;

describe('src/README.md', () => {
  it('names only files and folders that exist', () => {
    const named = [...README.matchAll(/`((?:\.\.\/)?[\w-]+(?:\/[\w.-]*)+|main\.ts)`/g)];
    const paths = named.map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(50);
    expect(paths.filter((path) => !existsSync(placeOf(path)))).toEqual([]);
  });

  it.each(QUESTIONS)('answers: %s (%s)', (_question, file, answer) => {
    expect(README).toContain(`\`${file}\``);
    expect(readFileSync(join(SRC, file), 'utf8')).toMatch(answer);
  });
});

it('Every other document names only files and folders that exist', () => {
  const named = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
    .filter((document) => document !== 'CHANGELOG.md')
    .flatMap((document) => {
      const text = readFileSync(join(ROOT, document), 'utf8');
      const paths = text.matchAll(PLACES);
      return [...paths].map(([path]) => ({ document, path }));
    });
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

/** A sub-folder may be named alone, in the row of its folder. */
function placeOf(path: string): string {
  const row = README.split('\n').find(
    (line) => line.startsWith('| `') && line.includes(`\`${path}`),
  );
  const folder = /^\| `(\w+\/)`/.exec(row ?? '')?.[1] ?? '';
  const inside = join(SRC, folder, path);
  return existsSync(inside) ? inside : join(SRC, path);
}
