/** The page that compares webhooks says of Tallyhook what its tests show. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const page = await readFile(join(ROOT, 'docs/webhooks-compared.md'), 'utf8');

const QUOTES = ["'", '`'];

/** `- feature: "title" (`file`)` */
const SHOWN = /^- (.+?): "(.+)" \(`(.+)`\)$/gm;
const shown = [...page.matchAll(SHOWN)].map(([, feature = '', title = '', file = '']) => ({
  feature,
  title,
  file,
}));

/** The features of the tables, and what Tallyhook has of them. */
const rows = page
  .split('\n')
  .filter((line) => /^\| [^|]/.test(line))
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')))
  .map(([feature = '', ours = '', ...others]) => ({ feature: withoutLinks(feature), ours, others }))
  .filter(({ feature }) => feature !== '');

function withoutLinks(text: string): string {
  return text.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}

it('Each test that the page names exists under that title', async () => {
  const missing: string[] = [];
  for (const { title, file } of shown) {
    const text = await readFile(join(ROOT, file), 'utf8').catch(() => '');
    // A title of a group of tests is the first argument of its call.
    if (!QUOTES.some((quote) => text.includes(`${quote}${title}${quote}`)))
      missing.push(`${file}: ${title}`);
  }
  expect(missing).toEqual([]);
});

it('What the page says that Tallyhook has is shown by a test, and each test shows such a row', () => {
  const has = rows.filter(({ ours }) => ours !== '—').map(({ feature }) => feature);
  const named = new Set(shown.map(({ feature }) => feature));
  const needsNone = ['Needs beside Postgres'];
  expect(has.filter((feature) => !named.has(feature) && !needsNone.includes(feature))).toEqual([]);
  expect([...named].filter((feature) => !has.includes(feature))).toEqual([]);
});

it('Every row of the page says something of the four others, which a page of theirs shows', () => {
  const bare = rows.filter(({ others }) => others.length !== 4);
  expect(bare).toEqual([]);
  const uncited = rows.flatMap(({ feature, others }) =>
    others.filter((cell) => cell !== 'not said' && !cell.includes('](https://')).map(() => feature),
  );
  expect(uncited).toEqual([]);
});
