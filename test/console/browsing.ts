/** Pages of the console in a browser, signed in; what they complained about. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Run in the page. */
const FINDINGS = `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) =>
  id + ': ' + nodes.map(({ html }) => html.slice(0, 200)).join(' ')))`;
const IS_WIDE = `document.documentElement.scrollWidth > document.documentElement.clientWidth`;

export interface Screen {
  width: number;
  scheme: 'light' | 'dark';
}
/**
 * Each width and each scheme once; with EVERY_SCREEN set, which `npm run screens` does, each width
 * in each scheme.
 */
export const SCREENS: Screen[] = [
  { width: 1280, scheme: 'light' },
  { width: 390, scheme: 'dark' },
  ...(process.env.EVERY_SCREEN === undefined
    ? []
    : ([
        { width: 1280, scheme: 'dark' },
        { width: 390, scheme: 'light' },
      ] as const)),
];

export interface Browsing {
  page: Page;
  /** Goes to a path of the console and waits until its view is there. */
  open(path: string): Promise<void>;
  /** Fails for what axe finds, errors of scripts, and requests that leave the origin. */
  check(what: string): Promise<void>;
}

/** Opens the console in a browser of one person, and signs in. */
export async function signIn(
  browser: Browser,
  url: string,
  key: string,
  { width, scheme }: Screen = { width: 1280, scheme: 'light' },
): Promise<Browsing> {
  const viewport = { width, height: 900 };
  const context = await browser.newContext({ viewport, colorScheme: scheme });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => {
    const from = new URL(request.url());
    const isOurs = from.origin === url || ['blob:', 'data:', 'about:'].includes(from.protocol);
    if (!isOurs) complaints.push(`a request left the origin: ${request.url()}`);
  });
  await page.goto(url);
  await page.fill('input[name=key]', key);
  await page.click('button[type=submit]');
  await page.waitForSelector('main .view');
  return {
    page,
    async open(path) {
      await page.goto(`${url}${path}`);
      await page.waitForSelector('main .view');
    },
    async check(what) {
      const found = await findingsOf(page);
      expect([...complaints, ...found], what).toEqual([]);
    },
  };
}

/** What axe finds, and that the page is wider than the screen. */
export async function findingsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate<string[]>(FINDINGS);
  const isWide = await page.evaluate<boolean>(IS_WIDE);
  return isWide ? [...found, 'it is wider than the screen'] : found;
}
