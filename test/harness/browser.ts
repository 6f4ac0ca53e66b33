/** Debian's Chromium, in which the pages are tested; these tests fail without it. */
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

export const CHROMIUM = '/usr/bin/chromium';

/** A browser for the tests of one `describe`. */
export function useBrowser(): () => Browser {
  let browser: Browser;
  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    browser = await chromium.launch({ executablePath: CHROMIUM, args });
  });
  afterAll(() => browser?.close());
  return () => browser;
}
