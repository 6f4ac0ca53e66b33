/** Pages of the console in a browser, signed in; what they complained about. */
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Run in the page. */
const FINDINGS = `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) =>
  id + ': ' + nodes.map(({ html }) => html.slice(0, 200)).join(' ')))`;
const IS_WIDE = `document.documentElement.scrollWidth > document.documentElement.clientWidth`;
/** Tables whose last columns cannot be seen, by their heads. */
const CUT_TABLES = `[...document.querySelectorAll('.scroll')]
  .filter((at) => at.scrollWidth > at.clientWidth)
  .map((at) => at.querySelector('thead')?.innerText.replaceAll(/\\s+/g, ' '))`;

/** How much of what a page showed has moved since it was opened, and what it was. */
const MOVED = `new Promise((done) => {
  const loaded = performance.getEntriesByType('resource').map(({ responseEnd }) => responseEnd);
  const tookMs = Math.max(...loaded);
  let value = 0;
  const what = new Set();
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) {
      value += shift.value;
      for (const { node } of shift.sources)
        what.add((node?.outerHTML ?? node?.textContent ?? 'what is gone').slice(0, 80));
    }
  }).observe({ type: 'layout-shift', buffered: true });
  const end = () => done({ tookMs, value, what: [...what] });
  requestAnimationFrame(() => requestAnimationFrame(end));
})`;
interface Moved {
  tookMs: number;
  value: number;
  what: string[];
}
/** As Core Web Vitals count it: 0.1 and more is what people notice. */
const MOVED_MAX = 0.05;
/** A page that takes longer to load, such as on a busy machine, is shown part by part. */
const OPENS_WITHIN_MS = 800;

export interface Screen {
  width: number;
  scheme: 'light' | 'dark';
  /** The time zone of the machine. */
  zone?: string;
}
/** A folder for a picture of every checked page, which `npm run screens` sets. */
const PICTURES = process.env.EVERY_SCREEN;

const WIDE: Screen = { width: 1280, scheme: 'light' };
const NARROW: Screen = { width: 390, scheme: 'dark' };

/** Of the two people of a walk; `npm run screens` walks once more with them swapped. */
export const [FIRST, SECOND] = process.env.SWAP_SCREENS ? [NARROW, WIDE] : [WIDE, NARROW];

/** Each scheme once; with EVERY_SCREEN set, each width in each scheme. */
export const SCREENS: Screen[] = [
  WIDE,
  NARROW,
  ...(PICTURES === undefined
    ? []
    : ([
        { width: 1280, scheme: 'dark' },
        { width: 390, scheme: 'light' },
        { width: 1920, scheme: 'light' },
        { width: 1920, scheme: 'dark' },
      ] as const)),
];

export interface Browsing {
  page: Page;
  /** Goes to a path of the console and waits until its view is there, with what it loads. */
  open(path: string): Promise<void>;
  /**
   * Fails for what axe finds, errors of scripts, and requests that leave the origin.
   * @param what a path or some words, by which the picture is named
   */
  check(what: string): Promise<void>;
}

/** Opens the console in a browser of one person, and signs in by a key or a portal link. */
export async function signIn(
  browser: Browser,
  url: string,
  by: string | { link: string },
  screen: Screen = FIRST,
): Promise<Browsing> {
  const { width, scheme, zone } = screen;
  const viewport = { width, height: 900 };
  const machine = zone === undefined ? {} : { timezoneId: zone };
  const context = await browser.newContext({ viewport, colorScheme: scheme, ...machine });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => {
    const from = new URL(request.url());
    const isOurs =
      from.origin === new URL(url).origin || ['blob:', 'data:', 'about:'].includes(from.protocol);
    if (!isOurs) complaints.push(`a request left the origin: ${request.url()}`);
  });
  if (typeof by === 'string') {
    await page.goto(url);
    await page.fill('input[name=key]', by);
    await page.click('button[type=submit]');
  } else await page.goto(by.link);
  await page.waitForSelector('main .view');
  return {
    page,
    async open(path) {
      await page.goto(`${url}${path}`);
      await page.waitForSelector('main .view');
      await page.getByText('Loading…').first().waitFor({ state: 'detached' });
      const { tookMs, value, what } = await page.evaluate<Moved>(MOVED);
      if (value >= MOVED_MAX && tookMs < OPENS_WITHIN_MS)
        complaints.push(`${path} moved by ${value.toFixed(3)} as it opened: ${what.join(' ')}`);
    },
    async check(what) {
      await page.getByText('Loading…').first().waitFor({ state: 'detached' });
      const found = await findingsOf(page, what, screen);
      expect([...complaints, ...found], what).toEqual([]);
    },
  };
}

/**
 * The text of what has the focus, as its label says it; in a table it begins with `row: `. It has
 * an outline and is within the window, or a person does not see where it is.
 */
const FOCUSED = `(({ activeElement: at }) => {
  // The page itself, with all of its text.
  if (at === document.body) return '';
  const { top, bottom } = at.getBoundingClientRect();
  const isWithin = bottom > 0 && top < innerHeight;
  const isSeen = isWithin && getComputedStyle(at).outlineStyle !== 'none';
  return (isSeen ? '' : 'not seen: ') + (at.closest('tbody') ? 'row: ' : '') +
    (at.closest('label') ?? at).innerText.trim();
})(document)`;
const TABS_MAX = 100;

/** Presses Tab until the focus is on what has such a text. @throws Error when it is not seen */
export async function tabTo(page: Page, text: RegExp): Promise<void> {
  const seen: string[] = [];
  while (seen.length < TABS_MAX) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate<string>(FOCUSED);
    if (focused.startsWith('not seen: ')) throw new Error(`The focus cannot be seen: ${focused}`);
    if (text.test(focused)) return;
    seen.push(focused);
  }
  throw new Error(`Tab does not lead to ${text}, but to ${seen.join(', ')}`);
}

/** What axe finds, and that the page or a table is wider than its place. */
export async function findingsOf(
  page: Page,
  what: string,
  { width, scheme }: Screen,
): Promise<string[]> {
  if (PICTURES !== undefined) {
    await mkdir(PICTURES, { recursive: true });
    const name = `${what.replaceAll(/\W+/g, ' ').trim() || 'overview'} ${width} ${scheme}.png`;
    await page.screenshot({ path: join(PICTURES, name), fullPage: true });
  }
  await page.evaluate(AXE);
  const found = await page.evaluate<string[]>(FINDINGS);
  if (await page.evaluate<boolean>(IS_WIDE)) found.push('it is wider than the screen');
  for (const heads of await page.evaluate<string[]>(CUT_TABLES))
    found.push(`a table is cut: ${heads}`);
  return found;
}
