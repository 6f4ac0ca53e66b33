/** Debian's Chromium, in which the pages are tested where it is installed. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

const CHROMIUM = '/usr/bin/chromium';

/** A browser for the tests of one `describe`; without one, a test that says so, and undefined. */
export function useBrowser(): (() => Browser) | undefined {
  if (!existsSync(CHROMIUM)) {
    it('These pages are not tested without a browser: apt-get install chromium', () => {
      expect(existsSync(CHROMIUM)).toBe(false);
    });
    return undefined;
  }
  let browser: Browser;
  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    browser = await chromium.launch({ executablePath: CHROMIUM, args });
  });
  afterAll(() => browser?.close());
  return () => browser;
}
