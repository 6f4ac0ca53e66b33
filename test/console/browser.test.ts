/**
 * The pages in a real browser, against a whole daemon. Debian's Chromium is used where it is
 * installed.
 */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import {
  ADMIN_KEY,
  createWorld,
  type DaemonProcess,
  startDaemon,
  type World,
} from '../harness/daemon.ts';

const CHROMIUM = '/usr/bin/chromium';

describe('the pages', () => {
  if (!existsSync(CHROMIUM)) {
    it('are not tried without a browser: apt-get install chromium', () => {
      expect(existsSync(CHROMIUM)).toBe(false);
    });
    return;
  }
  let world: World;
  let daemon: DaemonProcess;
  let browser: Browser;

  beforeAll(async () => {
    world = await createWorld();
    daemon = await startDaemon(world);
    const args = [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-sync',
    ];
    browser = await chromium.launch({ executablePath: CHROMIUM, args });
  });
  afterAll(async () => {
    await browser?.close();
    await daemon?.stop();
    await world?.close();
  });

  it('ask for a key, show the board with it, and show a report whose first line is its verdict', async () => {
    const app = makeApp(() => daemon.url);
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    const made = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
    expect(made.status).toBe(201);
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${daemon.url}/`);
    await page.fill('#key', 'thk_wrong-wrong-wrong-wrong-wrong-wrong-wrong');
    await page.click('#key-form button');
    await page.locator('#key-problem', { hasText: /\w/ }).waitFor();
    await page.fill('#key', ADMIN_KEY);
    await page.click('#key-form button');
    await page.locator('#board').waitFor({ state: 'visible' });
    await page.goto(`${daemon.url}/reports/${made.json.id}`);
    const report = page.frameLocator('#report');
    await report
      .getByText(/balanced|break/i)
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
  });
});
